"""What a step-through that was stopped came to: what was believed and measured, what it cost, why it ended."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from app.ui import labels, posterior_words, state, wording
from app.ui.headings import heading
from app.ui.step_through.step_answers import StepAnswers, measured_against_advice
from app.ui.traces import exports
from l2m_core.step_through.verdict import verdict
from l2m_core.step_through.words import as_sentence


def show(answers: StepAnswers) -> None:
    heading("How it ended")
    with st.container(key="step-summary"):
        st.markdown("\n".join(f"- {line}" for line in summary(answers)))
    exports.buttons(state.owner(), answers.record.step_through, "finish")


def summary(answers: StepAnswers) -> list[str]:
    """Lines of markdown."""
    return [
        f"**Believed:** {labels.markdown(_believed(answers))}",
        f"**Measured:** {labels.markdown(_measured(answers))}",
        f"**Spent:** {labels.markdown(_spent(answers))}",
        f"**Why it ended:** {labels.markdown(_why(answers))}",
    ]


def _believed(answers: StepAnswers) -> str:
    outcome, now, first = answers.outcome, answers.posterior, answers.views[0].step.posterior
    key = posterior_words.leading(outcome, now)
    start, end = (posterior_words.number(outcome, posterior, key) for posterior in (first, now))
    return f"{posterior_words.name_of(outcome, key)} {end}; {start} at the start."


def _measured(answers: StepAnswers) -> str:
    """Each result in order, and how it moved what is believed at the end."""
    outcome, key = answers.outcome, posterior_words.leading(answers.outcome, answers.posterior)
    lines = []
    for before, after in zip(answers.views, answers.views[1:], strict=False):
        event = after.last_event
        values = [
            f"{labels.plain(name)} {wording.value(answers.cohort, name, entered, event.limits.get(name))}"
            for name, entered in event.values.items()
            if entered is not None
        ]
        if event.kind == "observe" and values:
            moved = posterior_words.change(outcome, after.step.posterior, before.step.posterior, key)
            lines.append(f"{', '.join(values)} ({moved})")
    missing = [f"{labels.plain(name)} {status}" for name, status in answers.patient.state.statuses.items()]
    return f"{'; '.join([*lines, *missing])}." if lines or missing else "Nothing."


def _spent(answers: StepAnswers) -> str:
    events = answers.record.events
    minutes = (datetime.fromisoformat(events[-1].at) - datetime.fromisoformat(events[0].at)).total_seconds() / 60
    took = "less than a minute" if minutes < 1 else labels.minutes(minutes)
    kept = {view.last_event.id for view in answers.views}
    against = measured_against_advice(answers.record, answers.conditioned)
    against_advice = wording.against_advice(sum(answers.record.events[number].id in kept for number in against))
    cost = labels.entered_text(answers.patient.spent)
    return f"{labels.counted(answers.patient.steps, 'test')}{against_advice}, cost {cost}, in {took}."


def _why(answers: StepAnswers) -> str:
    """The reason that was given; else what was advised when it was stopped."""
    stopped = answers.view.last_event
    if stopped.reason:
        return stopped.reason
    if answers.before is None:
        return "It was stopped."
    advised = verdict(answers.before.patient, answers.record.settings.stopping)
    if advised.action == "stop":
        return f"Stopping was advised. {as_sentence(advised.sentence.removeprefix('Stop: '))}"
    return f"It was stopped by hand. The advice then was to go on: {advised.sentence}"

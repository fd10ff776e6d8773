"""What a step-through that was stopped came to: what was believed and measured, what it cost, why it ended."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from app.ui import labels, posterior_words, state, wording
from app.ui.headings import heading
from app.ui.step_through.step_answers import StepAnswers, measured_against_advice
from app.ui.traces import exports
from l2m_core.step_through.events import Event
from l2m_core.step_through.verdict import verdict
from l2m_core.step_through.words import as_sentence


def show(answers: StepAnswers) -> None:
    heading("How it ended")
    with st.container(key="step-summary"):
        st.markdown("\n".join(f"- {line}" for line in summary(answers)))
    exports.buttons(state.owner(), answers.record.step_through, "finish")


def summary(answers: StepAnswers) -> list[str]:
    """Lines of markdown."""
    parts = {
        "Believed": _believed(answers),
        "Measured": _measured(answers),
        "Corrected": _corrected(answers),
        "Spent": _spent(answers),
        "Why it ended": _why(answers),
    }
    return [f"**{part}:** {labels.markdown(words)}" for part, words in parts.items() if words]


def _believed(answers: StepAnswers) -> str:
    outcome, now, first = answers.outcome, answers.posterior, answers.views[0].step.posterior
    key = posterior_words.leading(outcome, now)
    start, end = (posterior_words.number(outcome, posterior, key) for posterior in (first, now))
    return f"{posterior_words.name_of(outcome, key)} {end}; {start} at the start."


def _measured(answers: StepAnswers) -> str:
    """Each result in order, and how it moved what is believed at the end."""
    missing = [f"{labels.plain(name)} {status}" for name, status in answers.patient.state.statuses.items()]
    lines = [*_moved(answers, "observe"), *missing]
    return f"{'; '.join(lines)}." if lines else "Nothing."


def _corrected(answers: StepAnswers) -> str:
    """Each correction likewise: without them, a result would stand as it no longer is, and its change unexplained."""
    lines = _moved(answers, "correct")
    return f"{'; '.join(lines)}." if lines else ""


def _moved(answers: StepAnswers, kind: str) -> list[str]:
    """The values of each event of a kind, and how they moved what is believed at the end."""
    outcome, key = answers.outcome, posterior_words.leading(answers.outcome, answers.posterior)
    lines = []
    for before, after in zip(answers.views, answers.views[1:], strict=False):
        event = after.last_event
        if event.kind == kind and event.values:
            moved = posterior_words.change(outcome, after.step.posterior, before.step.posterior, key)
            lines.append(f"{', '.join(_entered(answers, event))} ({moved})")
    return lines


def _entered(answers: StepAnswers, event: Event) -> list[str]:
    return [
        f"{labels.plain(name)} taken back"
        if value is None
        else f"{labels.plain(name)} {wording.value(answers.cohort, name, value, event.limits.get(name))}"
        for name, value in event.values.items()
    ]


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

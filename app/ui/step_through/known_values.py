"""Left column: known values, tests without a result, and the log of all events."""

from __future__ import annotations

import streamlit as st

from app.ui import inputs, labels, notices, wording
from app.ui.headings import heading
from app.ui.step_through import actions, rules
from app.ui.step_through.step_answers import StepAnswers

REASON = "correct-reason"
LIMIT = "correct-limit"
SIGNS = {
    "unavailable": ":material/block:",
    "declined": ":material/do_not_disturb_on:",
    "pending": ":material/schedule:",
}


def show(answers: StepAnswers) -> None:
    heading("Known")
    notices.show_waiting(actions.KNOWN)
    patient = answers.patient
    cohort, known = patient.memory.cohort, patient.state.values
    editing = st.session_state.get(actions.EDITING)
    if isinstance(editing, str) and editing in known:
        _correct(answers, editing)
    # The latest results first, those that came together in the order of the columns.
    measured = [
        name for action in reversed(patient.state.acquired) for name in cohort.names if name in action and name in known
    ]
    order = [*measured, *(name for name in cohort.names if name in known and name not in measured)]
    if not order:
        st.caption("Nothing yet.")
    with st.container(gap=None, key="known-values"):
        for name, short in zip(order, labels.short_apart(order, 26), strict=True):
            _value(answers, name, short)
    if patient.state.statuses:
        st.markdown("**Not available, declined or pending**")
        with st.container(gap=None, key="known-statuses"):
            statuses = patient.state.statuses
            for name, short in zip(statuses, labels.short_apart(list(statuses), 30), strict=True):
                _status(answers, name, short, statuses[name])
    title = f"Log ({labels.counted(answers.record.length, 'event')})"
    log = st.expander(title, key="step-log", type="compact", on_change="rerun")
    if log.open:
        with log:
            _log(answers)


def _value(answers: StepAnswers, name: str, short: str) -> None:
    patient = answers.patient
    cohort, state = patient.memory.cohort, patient.state
    value = wording.value_with_flag(cohort, name, state.values[name], state.limits.get(name))
    st.button(
        f":small[{labels.markdown(short)}] {value}",
        key=f"edit-{cohort.names.index(name)}",
        type="tertiary",
        icon=":material/edit:",
        icon_position="right",
        on_click=actions.edit,
        args=(name,),
        help=f"Correct {labels.markdown(name)}; the old value stays in the log",
    )


def _status(answers: StepAnswers, name: str, short: str, status: str) -> None:
    index = answers.cohort.names.index(name)
    st.button(
        f":small[{labels.markdown(short)}: {status}]",
        key=f"status-{index}",
        type="tertiary",
        icon=SIGNS[status],
        on_click=actions.choose,
        args=(name,),
        help=f"Enter a result of {labels.markdown(name)}",
    )


def _correct(answers: StepAnswers, name: str) -> None:
    patient, record = answers.patient, answers.record
    cohort = patient.memory.cohort
    feature = cohort.feature(name)
    index = cohort.names.index(name)
    key = f"correct-{record.id}-{index}-{record.length}"
    with st.form("correct", border=True):
        st.markdown(f"**Correct {labels.markdown(name)}**")
        inputs.ask(feature, cohort, key, patient.state.values[name])
        if feature.kind == "number":
            inputs.ask_limit(f"{LIMIT}-{key}", limit=patient.state.limits.get(name))
        st.text_input("Reason (optional)", key=f"{REASON}-{key}", max_chars=300)
        where = (record.id, record.length, name)
        with st.container(horizontal=True, gap="xsmall"):
            st.form_submit_button(
                "Save",
                key="correct-save",
                type="primary",
                on_click=actions.correct,
                args=(*where, key, f"{LIMIT}-{key}", f"{REASON}-{key}"),
            )
            st.form_submit_button(
                "Take back", key="correct-take-back", on_click=actions.take_back, args=(*where, f"{REASON}-{key}")
            )
            st.form_submit_button("Cancel", key="correct-cancel", on_click=actions.edit, args=(None,))


def _log(answers: StepAnswers) -> None:
    """All stored events, newest first. A change of rules is no step, so it has no number."""
    record, cohort = answers.record, answers.cohort
    lines = []
    for number, event in enumerate(record.events):
        lines.append(f"{number} · {event.at[11:16]} UTC · {wording.event(cohort, event)}")
        changes = (change for change in record.rules_set if change.after == number + 1)
        lines += [
            f"{change.at:%H:%M} UTC · Rules · {rules.in_words(change.settings, cohort.kind)}" for change in changes
        ]
    for line in reversed(lines):
        st.caption(labels.markdown(line))

"""Step-through: one patient, one test at a time."""

from __future__ import annotations

import streamlit as st

from app.host import services
from app.store import NotFound
from app.streamlit_contact.batched_delivery import batched_delivery
from app.streamlit_contact.top import begin_at_the_top
from app.ui import inputs, labels, notices, state
from app.ui.headings import heading
from app.ui.step_through import (
    actions,
    belief,
    conditioning,
    known_values,
    ranking,
    rules,
    start,
    step_answers,
    suggestion,
)
from app.ui.step_through.stored_events import Record, read
from app.ui.traces import exports
from l2m_core.errors import L2MError
from l2m_core.step_through.events import fold


def show() -> None:
    owner = state.owner()
    opened = state.opened(state.STEP_THROUGH)
    if opened is None:
        notices.show_waiting()
        start.show(owner)
        return
    try:
        record = read(owner, opened)
        present = step_answers.answers_of(record, conditioning.condition(owner, record))
    except NotFound as refusal:
        _leave()
        notices.show("warning", str(refusal))
        start.show(owner)
        return
    except step_answers.ModelGone as refusal:
        notices.show("warning", str(refusal))
        _offer_again(owner, refusal.record)
        return
    except L2MError as refusal:
        notices.show("error", str(refusal))
        st.button("Leave this step-through", key="leave", on_click=_leave)
        return
    if actions.went_on_elsewhere(record):
        actions.say_went_on()
    suggestion.prefetch(present)
    begin_at_the_top(opened)
    with batched_delivery():
        _draw(present)


def _draw(present: step_answers.StepAnswers) -> None:
    """In the order in which a phone shows it; wider screens put it side by side (page.css)."""
    with st.container(key="step-head"):
        _head(present)
    notices.show_waiting()
    suggestion.show_verdict(present)
    with st.container(key="step-page"):
        with st.container(key="step-main"):
            with st.container(key="step-now"):
                belief.show(present)
            with st.container(key="step-next"):
                suggestion.show(present)
            with st.container(key="step-charts"):
                heading("How it moved")
                belief.show_history(present, range(len(present.views)))
                belief.show_gains(present)
            with st.container(key="step-tests"):
                ranking.show(present)
        with st.container(key="step-known"):
            known_values.show(present)


def _head(present: step_answers.StepAnswers) -> None:
    record, patient = present.record, present.patient
    memory = patient.memory
    model = labels.markdown(record.answering(memory.release.name))
    title, tools = st.columns([1.7, 1], vertical_alignment="center")
    with title, st.container(gap=None):
        name = labels.markdown(labels.short(record.step_through.title or "Step-through", 60))
        st.markdown(f"#### {name}", anchors=False)
        st.markdown(
            f":small[{labels.markdown(memory.cohort.name)}, version {record.cohort.version} · model {model} · "
            f"{labels.counted(patient.steps, 'test')} · cost {labels.entered_text(patient.spent)} · "
            f":material/science: {labels.markdown(notices.RESEARCH_SHORT)}]"
        )
    with tools, st.container(horizontal=True, horizontal_alignment="right", gap="xsmall", key="step-tools"):
        rules.show(present)
        exports.show(state.owner(), record.step_through)
        st.button(
            "New",
            key="new-patient",
            icon=":material/person_add:",
            help="Leave this one (it is saved) and begin another",
            on_click=_leave,
        )


def _leave() -> None:
    state.open_id(state.STEP_THROUGH, None)
    for key in (actions.CHOSEN, actions.EDITING, inputs.UNUSUAL):
        st.session_state.pop(key, None)


def _offer_again(owner: str, record: Record) -> None:
    models = list(services.get().model_names(owner))
    chosen = st.selectbox("Model", models, key="again-model", format_func=labels.plain)
    st.button(
        "Begin again with the same values", key="again", type="primary", on_click=_begin_again, args=(record.id, chosen)
    )
    st.button("Leave this step-through", key="leave", on_click=_leave)


def _begin_again(step_id: str, model: str) -> None:
    with notices.refusals():
        record = read(state.owner(), step_id)
        known = fold(record.events)
        actions.start(
            record.cohort.id, model, record.step_through.title, dict(known.values), record.settings, dict(known.limits)
        )


show()

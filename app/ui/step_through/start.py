"""The start of a step-through: choose a cohort, enter what is known, or continue an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from app.catalogue import DEFAULT_MODEL
from app.host import services
from app.store import StepThrough, StoredCohort
from app.ui import inputs, labels, notices, state
from app.ui.step_through import actions, bring, conditioning
from app.ui.step_through.rules import ask_rules, entered_rules
from app.ui.step_through.stored_events import Rules
from l2m_core.acquire.stopping import Stopping
from l2m_core.cohort import Cohort
from l2m_core.memory import L2M
from l2m_core.patients import PatientRecord
from l2m_core.step_through.words import as_sentence

SECTION = "start"
ALSO = "start-also"
BEGINNING = "start-beginning"
FILLED = "fill in an example"  # what was done, see `state.acted`
COLUMNS = 3


@dataclass(frozen=True)
class Beginning:
    """A step-through that was requested while the model had not read the cohort yet."""

    cohort_id: str
    model: str
    title: str
    values: dict[str, Any]
    settings: Rules
    limits: Mapping[str, str] = field(default_factory=dict)

    def carry_out(self) -> None:
        actions.start(self.cohort_id, self.model, self.title, self.values, self.settings, self.limits)


def show(owner: str) -> None:
    store = services.get().store
    cohorts = {cohort.id: cohort for cohort in store.cohorts.list(owner)}
    if not cohorts:
        st.title("Step-through", anchor=False)
        st.write("A step-through needs a cohort: a table of earlier patients to learn from.")
        st.page_link("views/cohort.py", label="Open a cohort", icon=":material/table_chart:")
        return
    st.title("New step-through", anchor=False)
    notices.research_banner()
    left, right = st.columns([2.4, 1], gap="large")
    with right:
        # Of a cohort that is gone or no longer shared nothing can be computed: Traces has these.
        _earlier_step_throughs(store.step_throughs.list(owner, limit=50, cohorts=cohorts))
    with left:
        stored = _choose_cohort(cohorts)
        with notices.shown_refusals():
            bring.show(stored, services.get().shown_cohort(owner, stored), _begin_with)
            _ask(owner, stored)
            _read_and_begin(owner)
            conditioning.show_reading(owner, stored, _chosen_model(owner))


def _choose_cohort(cohorts: dict[str, StoredCohort]) -> StoredCohort:
    opened = state.opened(state.COHORT)
    identifiers = list(cohorts)
    index = identifiers.index(opened) if opened in cohorts else 0
    key = "start-cohort"
    chosen = st.selectbox(
        "Cohort",
        identifiers,
        index=index,
        key=key,
        on_change=_turn_to,
        args=(key,),
        format_func=lambda i: f"{labels.plain(cohorts[i].name)}, version {cohorts[i].version}",
    )
    return cohorts[str(chosen)]


def _turn_to(key: str) -> None:
    state.turn_to(state.COHORT, st.session_state.get(key))


def _ask(owner: str, stored: StoredCohort) -> None:
    cohort = services.get().shown_cohort(owner, stored)
    baseline = cohort.schema.baseline
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.multiselect(
            "Also known already",
            cohort.schema.acquirable,
            key=f"{ALSO}-{stored.id}",
            format_func=labels.plain,
            placeholder="Tests with a result",
            persist_state="page",
        )
        if baseline:
            st.button(
                "Fill in an example",
                key="start-example",
                icon=":material/person:",
                on_click=_fill,
                args=(owner, stored.id),
                help="Typical values in this cohort, not a real patient",
            )
    notices.show_waiting(SECTION)
    also = st.session_state.get(f"{ALSO}-{stored.id}", [])
    fields = {name: _key(stored, cohort, name) for name in (*baseline, *also)}
    with st.form("start", border=True):
        st.text_input(
            "Label",
            key="start-title",
            max_chars=120,
            value=f"Patient {datetime.now(UTC):%d %b %H:%M} UTC",
            help="To find it again. Leave out names and record numbers.",
        )
        st.markdown("**What is known already.** Leave unknown values empty.")
        if not fields:
            st.caption("This cohort has no baseline features, so you begin with nothing known.")
        _ask_values(cohort, fields)
        with st.expander("Ranking and stopping (optional)", type="compact"):
            ask_rules(_first_rules(owner, cohort), _rules_key(stored.id))
        _ask_model(owner)
        st.form_submit_button(
            "Begin",
            key="start-submit",
            type="primary",
            icon=":material/footprint:",
            help="Enter",
            on_click=_begin,
            args=(stored.id, fields),
        )


def _first_rules(owner: str, cohort: Cohort) -> Rules:
    model = services.get().model(owner, st.session_state.get("start-model", DEFAULT_MODEL))
    return Rules(Stopping.at_first(cohort, model.release))


def _rules_key(cohort_id: str) -> str:
    """Each cohort has fields of its own, as the first rules go by how rare its outcome is."""
    return f"start-rules-{cohort_id}"


def _ask_values(cohort: Cohort, fields: dict[str, str]) -> None:
    """fields: feature → key of its widget."""
    names = list(fields)
    for first in range(0, len(names), COLUMNS):
        for column, name in zip(st.columns(COLUMNS), names[first : first + COLUMNS], strict=False):
            with column:
                inputs.ask(cohort.feature(name), cohort, fields[name])


def _ask_model(owner: str) -> None:
    models = list(services.get().model_names(owner))
    if len(models) > 1:
        st.selectbox(
            "Model",
            models,
            key="start-model",
            format_func=labels.plain,
            index=models.index(DEFAULT_MODEL) if DEFAULT_MODEL in models else 0,
        )


def _chosen_model(owner: str) -> L2M:
    return services.get().model(owner, st.session_state.get("start-model", DEFAULT_MODEL))


def _key(stored: StoredCohort, cohort: Cohort, name: str) -> str:
    return f"start-{stored.id}-{cohort.names.index(name)}"


def _fill(owner: str, cohort_id: str) -> None:
    with notices.refusals(SECTION):
        stored = services.get().store.cohorts.get(owner, cohort_id)
        cohort = services.get().shown_cohort(owner, stored)
        for name, value in _example(cohort).items():
            st.session_state[_key(stored, cohort, name)] = value
        state.acted(FILLED)


def _example(cohort: Cohort) -> dict[str, Any]:
    return inputs.typical_values(cohort, cohort.schema.baseline)


def _begin(cohort_id: str, fields: dict[str, str]) -> None:
    if inputs.is_just_asked():
        return
    values: dict[str, Any] = {name: value for name, key in fields.items() if (value := inputs.entered(key)) is not None}
    title = str(st.session_state.get("start-title") or "").strip()
    model = st.session_state.get("start-model", DEFAULT_MODEL)
    with notices.refusals(SECTION):
        here, owner = services.get(), state.owner()
        stored = here.store.cohorts.get(owner, cohort_id)
        cohort = here.shown_cohort(owner, stored)
        if state.is_echo(FILLED):  # pressed so soon that the browser sends the fields as they were before
            values = _example(cohort) | values
        try:
            inputs.ask_about_unusual(cohort, values)
        except inputs.Unconfirmed as question:
            inputs.say_unconfirmed(question, "Begin", SECTION)
            return
        inputs.forget_unusual()
        asked = Beginning(cohort_id, model, title, values, entered_rules(_rules_key(cohort_id)))
        _request(owner, asked)


def _begin_with(cohort_id: str, record: PatientRecord) -> bool:
    """With a patient who was pasted or uploaded, by the usual rules, which can be changed on the way. Whether it begins."""
    title = f"{as_sentence(record.label)}, brought {datetime.now(UTC):%d %b %H:%M} UTC"
    model = st.session_state.get("start-model", DEFAULT_MODEL)
    with notices.refusals(SECTION):
        here, owner = services.get(), state.owner()
        rules = _first_rules(owner, here.shown_cohort(owner, here.store.cohorts.get(owner, cohort_id)))
        _request(owner, Beginning(cohort_id, model, title, dict(record.values), rules, record.limits))
        return True
    return False


def _request(owner: str, asked: Beginning) -> None:
    """Begins now, or once the page is drawn, where the model has not read the cohort yet."""
    here = services.get()
    if here.has_read(here.store.cohorts.get(owner, asked.cohort_id), here.model(owner, asked.model)):
        asked.carry_out()
    elif not state.is_echo("start"):
        st.session_state[BEGINNING] = asked


def _read_and_begin(owner: str) -> None:
    """Under the form, where people look: reads the cohort, then begins the step-through that was requested."""
    asked: Beginning | None = st.session_state.get(BEGINNING)
    if asked is None:
        return
    with notices.refusals(SECTION):
        here = services.get()
        stored = here.store.cohorts.get(owner, asked.cohort_id)
        conditioning.wait_until_read(owner, stored, here.model(owner, asked.model))
        asked.carry_out()
    # Only now: where something else ends this run while the cohort is read, the next one goes on with it.
    st.session_state.pop(BEGINNING, None)
    st.rerun()


def _earlier_step_throughs(step_throughs: tuple[StepThrough, ...]) -> None:
    if not step_throughs:
        return
    st.subheader("Continue a step-through", anchor=False)
    for step_through in step_throughs[:8]:
        title = labels.markdown(labels.short(step_through.title or "without label", 40))
        done = ":material/check: " if step_through.status == "finished" else ""
        st.button(
            f"{done}{title} · {step_through.updated_at:%d %b %H:%M} UTC",
            key=f"go-on-{step_through.id}",
            type="tertiary",
            on_click=state.open_id,
            args=(state.STEP_THROUGH, step_through.id),
        )

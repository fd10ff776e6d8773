"""The actions of a step-through. Each is stored before it is shown; a double press is one event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import streamlit as st

from app.host import services
from app.store import Conflict, NewEvent
from app.ui import inputs, labels, notices, state, wording
from app.ui.step_through import step_answers
from app.ui.step_through.stored_events import SETTINGS, Record, Rules, append_last_event, new_event
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.trace import summarise

NEXT = "next"  # section of messages beside the test to measure
KNOWN = "known"  # … beside what is known
CHOSEN = "step-chosen-test"
EDITING = "step-editing"
# The step-through that this tab shows, and how many events it has by what was shown and recorded here.
SEEN = "step-seen"

Act = Callable[..., Patient]
NOTHING: Mapping[str, Any] = MappingProxyType({})


def carry_out(
    step_id: str,
    expected_length: int,
    kind: str,
    about: tuple[str, ...],
    act: Act,
    section: str,
    typed: Mapping[str, Any] = NOTHING,
    limits: Mapping[str, str] = NOTHING,
) -> bool:
    """Apply `act` to the patient and store the event that it made. Returns whether the event is in the record now.

    typed, limits: the values that were typed for it, which are told where another tab came first.
    """
    if state.is_echo(kind):
        return False
    owner = state.owner()
    event_id = state.event_id(step_id, expected_length, kind, about)
    with notices.refusals(section):
        present = step_answers.load(owner, step_id)
        if event_id in present.record.event_ids:
            return True
        if expected_length != present.record.length:
            _say_not_recorded(section, present, typed, limits)
            return False
        after = act(present.patient, id=event_id)
        _look_ahead(present, after)
        try:
            stored = append_last_event(owner, step_id, expected_length, after)
        except Conflict:
            _say_not_recorded(section, present, typed, limits)
            return False
        step_answers.cache_view(present, stored.hash, after)
        st.session_state[SEEN] = (step_id, expected_length + 1)
        state.acted(kind)
        st.session_state.pop(CHOSEN, None)
        return True
    return False


def _look_ahead(present: step_answers.StepAnswers, after: Patient) -> None:
    """Ask the model at once for all that the page will show of the new state.

    Where the next suggestion is not computed yet, the best test left is the guess.
    """
    if after.state.stopped:
        return
    taken = (*after.state.values, *after.state.statuses)
    left = (test.feature for test in present.view.tests if test.feature not in taken)
    name = after.suggestion if after.is_cached else next(left, None)
    if name is not None:
        after.prefetch(name)


def went_on_elsewhere(record: Record) -> bool:
    """Whether the step-through has events that this tab has neither shown nor recorded; from now on it has shown them."""
    shown = st.session_state.get(SEEN)
    st.session_state[SEEN] = (record.id, record.length)
    return shown is not None and shown[0] == record.id and shown[1] != record.length


def say_went_on() -> None:
    state.notify(
        "warning",
        "This step-through went on elsewhere, for example in another tab. You see its current state now; a value that was "
        "typed here and not recorded was not sent.",
    )


def _say_not_recorded(
    section: str, present: step_answers.StepAnswers, typed: Mapping[str, Any], limits: Mapping[str, str]
) -> None:
    """The field of a test that is still to be measured stays open; a value that came second to another is told here only."""
    open_tests = [name for name in typed if name not in present.patient.state.values]
    if section == NEXT and open_tests:
        st.session_state[CHOSEN] = open_tests[0]
    words = [f"{labels.plain(n)} {wording.value(present.cohort, n, typed[n], limits.get(n))}" for n in typed]
    _say_conflict(section, f" Typed here and not recorded: {', '.join(words)}." if words else "")


def _say_conflict(section: str, lost: str = "") -> None:
    st.session_state.pop(SEEN, None)  # that it went on is said here
    state.notify(
        "warning",
        "This step-through was changed elsewhere, for example in another tab, so nothing was recorded here. "
        f"You see its current state now.{lost}",
        section,
    )


# -- results --------------------------------------------------------------------------------------------------------


def record(
    step_id: str, expected_length: int, fields: dict[str, str], limit_keys: dict[str, str], reason_key: str
) -> None:
    """Record one result, or a panel of them, as one event; empty fields are left out.

    fields, limit_keys: feature → key of its widget.
    """
    if state.is_echo("observe") or inputs.is_just_asked():
        return
    values = {name: value for name, key in fields.items() if (value := inputs.entered(key)) is not None}
    if not values:
        state.notify("error", "Enter a result first, or mark the test as not available, declined or pending.", NEXT)
        return
    beyond = {name: inputs.entered_limit(key) for name, key in limit_keys.items() if name in values}
    limits = {name: limit for name, limit in beyond.items() if limit is not None}
    reason = _reason(reason_key)

    def act(patient: Patient, **event: Any) -> Patient:
        inputs.ask_about_unusual(patient.memory.cohort, values, limits)
        return patient.observe(values, limits=limits, reason=reason, **event)

    try:
        is_stored = carry_out(step_id, expected_length, "observe", tuple(values), act, NEXT, values, limits)
    except inputs.Unconfirmed as question:
        inputs.say_unconfirmed(question, "Record", NEXT)
        return
    if is_stored:
        for key in (*fields.values(), *limit_keys.values(), reason_key):
            st.session_state.pop(key, None)
        inputs.forget_unusual()


def _reason(key: str) -> str:
    return str(st.session_state.get(key) or "")


def mark(step_id: str, expected_length: int, kind: str, names: tuple[str, ...], reason_key: str) -> None:
    """Mark tests as unavailable, declined or pending (kind)."""
    reason = _reason(reason_key)

    def act(patient: Patient, **event: Any) -> Patient:
        return getattr(patient, kind)(*names, reason=reason, **event)

    if carry_out(step_id, expected_length, kind, names, act, NEXT):
        st.session_state.pop(reason_key, None)


# -- what was recorded ----------------------------------------------------------------------------------------------


def edit(name: str | None) -> None:
    st.session_state[EDITING] = name
    inputs.forget_unusual()


class Unchanged(Exception):
    """A correction to what is recorded already, without a reason: there is nothing to record."""


def correct(step_id: str, expected_length: int, name: str, value_key: str, limit_key: str, reason_key: str) -> None:
    if inputs.is_just_asked():
        return
    value = inputs.entered(value_key)
    limit = inputs.entered_limit(limit_key)
    reason = _reason(reason_key)
    if value is None:
        state.notify("error", "Enter the corrected value, or use 'Take back' to make it unknown again.", KNOWN)
        return

    def act(patient: Patient, **event: Any) -> Patient:
        if (value, limit, "") == (patient.state.values.get(name), patient.state.limits.get(name), reason):
            raise Unchanged
        inputs.ask_about_unusual(patient.memory.cohort, {name: value}, {name: limit} if limit else {})
        return patient.correct(name, value, limit=limit, reason=reason, **event)

    try:
        typed, limits = {name: value}, {name: limit} if limit else {}
        is_done = carry_out(step_id, expected_length, "correct", (name, repr(value)), act, KNOWN, typed, limits)
    except inputs.Unconfirmed as question:
        inputs.say_unconfirmed(question, "Save", KNOWN)
        return
    except Unchanged:
        is_done = True
    if is_done:
        edit(None)


def take_back(step_id: str, expected_length: int, name: str, reason_key: str) -> None:
    reason = _reason(reason_key)

    def act(patient: Patient, **event: Any) -> Patient:
        return patient.correct(name, None, reason=reason, **event)

    if carry_out(step_id, expected_length, "correct", (name, "taken back"), act, KNOWN):
        edit(None)


def undo(step_id: str, expected_length: int) -> None:
    carry_out(step_id, expected_length, "undo", (), lambda patient, **event: patient.undo(**event), NEXT)


def stop(step_id: str, expected_length: int, reason_key: str) -> None:
    reason = _reason(reason_key)
    carry_out(step_id, expected_length, "stop", (), lambda patient, **event: patient.stop(reason, **event), NEXT)


def reopen(step_id: str, expected_length: int) -> None:
    carry_out(step_id, expected_length, "reopen", (), lambda patient, **event: patient.reopen(**event), NEXT)


# -- choices that record nothing of the patient ---------------------------------------------------------------------


def choose(name: str | None) -> None:
    """Select a test; None selects the suggested one."""
    st.session_state[CHOSEN] = name
    inputs.forget_unusual()


def save_settings(step_id: str, expected_length: int, settings: Rules) -> None:
    with notices.refusals():
        owner = state.owner()
        payload = settings.to_payload()
        event_id = state.event_id(step_id, expected_length, SETTINGS, (repr(payload),))
        try:
            step_throughs = services.get().store.step_throughs
            step_throughs.append_event(owner, step_id, event_id, expected_length, SETTINGS, payload)
            st.session_state[SEEN] = (step_id, expected_length + 1)
            state.notify("success", "The rules for ranking and stopping are saved with this step-through.")
        except Conflict:
            _say_conflict("page")


def start(
    cohort_id: str,
    model_name: str,
    title: str,
    values: dict[str, Any],
    settings: Rules,
    limits: Mapping[str, str] | None = None,
) -> None:
    """Begin a step-through and open it. A double press begins one."""
    if state.is_echo("start"):
        return
    owner, shared = state.owner(), services.get()
    model = shared.model(owner, model_name)
    conditioned = shared.conditioned(owner, shared.store.cohorts.get(owner, cohort_id), model)
    memory = shared.with_council(conditioned).memory
    patient = Patient.start(memory, values, limits=limits, id=state.new_id("start event"))
    events = [new_event(patient.events[0], summarise(patient), memory.recipe)]
    if settings != Rules():
        events.append(NewEvent(state.new_id("start settings"), SETTINGS, settings.to_payload()))
    step_through = shared.store.step_throughs.create(
        owner, cohort_id, model.fingerprint, title, state.new_id("start"), events
    )
    state.spend("start")
    state.spend("start event")
    state.spend("start settings")
    state.acted("start")
    state.open_id(state.STEP_THROUGH, step_through.id)

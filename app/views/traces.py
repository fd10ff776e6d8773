"""Traces: find, replay, compare, verify, export and import recorded step-throughs."""

from __future__ import annotations

import streamlit as st

from app.host import services
from app.store import Conflict, NotFound
from app.ui import labels, notices, state
from app.ui.step_through import conditioning
from app.ui.traces import compare, deleting, exports, importing, listing, loading, replay, verify
from app.ui.traces.loading import LoadedTrace
from l2m_core.errors import L2MError


def show() -> None:
    owner = state.owner()
    opened = state.opened(state.TRACE)
    if opened is None:
        _show_list(owner)
        return
    try:
        loaded = loading.load(owner, opened, conditioning.condition)
    except NotFound as refusal:
        listing.open_trace(None)
        notices.show("warning", str(refusal))
        _show_list(owner)
        return
    except L2MError as refusal:
        _show_unreadable(owner, opened, refusal)
        return
    _show_one(owner, loaded)


def _show_list(owner: str) -> None:
    title, tools = st.columns([2.4, 1], vertical_alignment="bottom")
    with title:
        st.title("Traces", anchor=False)
    with tools, st.container(horizontal=True, horizontal_alignment="right"):
        importing.show()
    notices.research_banner()
    notices.show_waiting()
    listing.show(owner)


def _show_unreadable(owner: str, identifier: str, refusal: L2MError) -> None:
    """For events that cannot be read any more; the chain says whether they are those that were stored."""
    notices.show("error", f"This step-through cannot be read. {refusal}")
    with notices.shown_refusals():
        verdict = services.get().store.step_throughs.verify(owner, identifier)
        notices.show(
            "info",
            "Its chain of events is whole." if verdict.intact else f"Its chain of events is broken: {verdict.reason}.",
        )
    deleting.offer_one(identifier)
    _back()


def _back() -> None:
    st.button(
        "All traces",
        key="trace-leave",
        icon=":material/arrow_back:",
        type="tertiary",
        on_click=listing.open_trace,
        args=(None,),
    )


def _show_one(owner: str, loaded: LoadedTrace) -> None:
    _back()
    _head(owner, loaded)
    notices.show_waiting()
    notices.show_waiting(importing.SECTION)
    replayed, compared, verified = st.tabs(["Replay", "Compare", "Verify"], key="trace-tabs", on_change="rerun")
    if replayed.open:
        with replayed:
            replay.show(loaded)
    if compared.open:
        with compared:
            compare.show(owner, loaded)
    if verified.open:
        with verified:
            verify.show(loaded)


def _head(owner: str, loaded: LoadedTrace) -> None:
    record, trace = loaded.record, loaded.trace
    title, tools = st.columns([1.35, 1], vertical_alignment="center")
    tests = sum(len(step.event.values) > 0 and step.event.kind == "observe" for step in loaded.counting)
    with title, st.container(gap=None):
        st.markdown(f"#### {labels.markdown(labels.short(loaded.label, 60))}", anchors=False)
        model = f"model {labels.markdown(record.answering(trace.model))}" if trace.model else "model not installed"
        st.markdown(
            f":small[{labels.markdown(record.cohort.name)}, version {record.cohort.version} · {model} · "
            f"{labels.counted(tests, 'test')} · cost {labels.entered_text(trace.steps[-1].spent)} · "
            f":material/science: {labels.markdown(notices.RESEARCH_SHORT)}]"
        )
    with tools, st.container(horizontal=True, horizontal_alignment="right", gap="xsmall"):
        with st.popover("Rename", icon=":material/edit:"), st.form("trace-rename", border=False):
            key = f"trace-title-{record.id}-{record.step_through.version}"
            st.text_input(
                "Label",
                value=record.step_through.title,
                key=key,
                max_chars=120,
                help="Leave out names and record numbers.",
            )
            st.form_submit_button(
                "Save",
                key="trace-rename-save",
                type="primary",
                on_click=_rename,
                args=(record.id, record.step_through.version, key),
            )
        exports.show(owner, record.step_through)
        deleting.offer_one(record.id)
        st.button(
            "Continue",
            key="trace-continue",
            type="primary",
            icon=":material/footprint:",
            on_click=listing.continue_with,
            args=(record.id,),
            disabled=record.cohort.deleted_at is not None,
            help=listing.CANNOT_GO_ON if record.cohort.deleted_at else None,
        )


def _rename(identifier: str, version: int, key: str) -> None:
    with notices.refusals():
        try:
            title = str(st.session_state.get(key) or "").strip()
            services.get().store.step_throughs.update(state.owner(), identifier, version, title=title)
        except Conflict as refusal:
            state.notify("warning", str(refusal))


show()

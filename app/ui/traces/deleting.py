"""Deletes step-throughs, one or several at once, after saying what that means."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app.host import services
from app.store import NotFound
from app.ui import labels, state
from l2m_core.errors import L2MError

ERASED = (
    "Every value, prediction, reason and the label are erased for good, from the memory of this installation too. The audit "
    "trail keeps that you deleted it, and when, and a hash of each event, which tells nothing of it. Files that were "
    "exported, copies that others imported, and back-ups of the database stay: delete those where they are."
)


def offer_one(step_through_id: str) -> None:
    with st.popover("Delete", icon=":material/delete:"):
        st.write(ERASED)
        st.button("Delete for good", key="trace-delete", type="primary", on_click=_delete, args=([step_through_id],))


def offer_mark(step_through_id: str, title: str) -> None:
    st.checkbox(f"Mark {labels.plain(title)}", key=_mark(step_through_id), label_visibility="collapsed")


def offer_many(shown: Sequence[tuple[str, str]]) -> None:
    """shown: ids and titles of the step-throughs on this page of the list."""
    marked = [(name, title) for name, title in shown if st.session_state.get(_mark(name))]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Mark all on this page" if len(marked) < len(shown) else "Mark none",
            key="traces-mark-all",
            type="tertiary",
            on_click=_set_marks,
            args=([name for name, _ in shown], len(marked) < len(shown)),
        )
        if not marked:
            return
        with st.popover(f"Delete {labels.counted(len(marked), 'step-through')}", icon=":material/delete:"):
            st.write("\n".join(f"- {labels.markdown(title or 'without label')}" for _, title in marked))
            st.write(ERASED)
            st.button(
                "Delete for good",
                key="traces-delete",
                type="primary",
                on_click=_delete,
                args=([name for name, _ in marked],),
            )


def _mark(step_through_id: str) -> str:
    return f"mark-{step_through_id}"


def _set_marks(step_through_ids: Sequence[str], value: bool) -> None:
    for name in step_through_ids:
        st.session_state[_mark(name)] = value


def _delete(step_through_ids: Sequence[str]) -> None:
    try:
        gone = services.get().delete_step_throughs(state.owner(), step_through_ids)
    except NotFound as refusal:
        state.notify("warning", str(refusal))
    except L2MError as refusal:
        state.notify("error", f"Nothing was deleted. {refusal}" if not _are_gone(step_through_ids) else str(refusal))
    else:
        _say(gone, len(step_through_ids) - gone)
    for name in step_through_ids:
        st.session_state.pop(_mark(name), None)
        for what in (state.TRACE, state.STEP_THROUGH):
            state.close(what, name)


def _are_gone(step_through_ids: Sequence[str]) -> bool:
    """Whether they were deleted although an error followed, such as a journal that could not be emptied."""
    step_throughs = services.get().store.step_throughs
    return all(step_throughs.deleted(state.owner(), name) is not None for name in step_through_ids)


def _say(gone: int, before: int) -> None:
    if gone:
        state.notify("success", f"{labels.counted(gone, 'step-through')} deleted.")
    if before:
        state.notify("info", f"{labels.counted(before, 'step-through')} had been deleted already.")

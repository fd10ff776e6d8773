"""Imports a step-through from its JSON file."""

from __future__ import annotations

import streamlit as st

from app.ui import labels, notices, state
from app.ui.traces import exchange, listing
from l2m_core.errors import L2MError

SECTION = "import"
ROUND = "traces-import-round"


def show() -> None:
    with st.popover("Import a trace", icon=":material/upload:"):
        st.file_uploader(
            "Trace as JSON, up to 5 MB",
            type=["json"],
            key=_key(),
            max_upload_size=5,
            on_change=_take,
            help="Its cohort and its model must be installed here; both are found by their fingerprints",
        )
        st.caption("Before it is stored it is checked: it must be complete, and replay to the predictions it records.")
        notices.show_waiting(SECTION)  # a refusal: on a phone, what is opened here lies over the page


def _key() -> str:
    return f"traces-import-{st.session_state.get(ROUND, 0)}"


def _take() -> None:
    upload = st.session_state.get(_key())
    if upload is None:
        return
    try:
        imported = exchange.import_trace(state.owner(), exchange.read_file(upload.getvalue()))
    except L2MError as refusal:
        state.notify("error", f"{labels.plain(upload.name)}: {refusal}", SECTION)
        return
    state.notify("success" if imported.exact else "warning", imported.sentence, SECTION)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1  # an empty uploader for the next file
    listing.open_trace(imported.step_through.id)

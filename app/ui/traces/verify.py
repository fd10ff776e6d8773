"""Shows the checks of a step-through, and a check against a file that was exported earlier."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.ui import labels, notices, state
from app.ui.traces import checks, exchange, loading
from app.ui.traces.checks import Check
from app.ui.traces.loading import LoadedTrace

SECTION = "verify"
FILE = "verify-file"  # section of messages beside the exported file
SIGNS = {
    "verified": ":material/check_circle:",
    "failed": ":material/error:",
    "not checked": ":material/help:",
}
WORDS = {
    "verified": "All checks passed.",
    "failed": "A check failed.",
    "not checked": "No check failed, but some could not be made.",
}


def show(loaded: LoadedTrace) -> None:
    left, right = st.columns([1.5, 1], gap="large")
    key = _key(loaded)
    with left:
        st.subheader("This record", anchor=False)
        st.caption(
            "Follows the chain of stored events, reads table and model from disk again, and recomputes every prediction "
            "and every suggestion."
        )
        st.button(
            "Verify now",
            key="verify",
            type="primary",
            icon=":material/verified_user:",
            on_click=_verify,
            args=(loaded.record.id,),
        )
        notices.show_waiting(SECTION)
        _show_found(st.session_state.get(key))
    with right:
        st.subheader("Against an exported file", anchor=False)
        st.caption(
            "The chain alone cannot show that its newest events were removed. A trace that was exported earlier and kept "
            "elsewhere can."
        )
        st.file_uploader(
            "Trace exported earlier (JSON)",
            type=["json"],
            key=f"verify-file-{loaded.record.id}",
            max_upload_size=5,
            on_change=_verify_file,
            args=(loaded.record.id,),
        )
        notices.show_waiting(FILE)
        _show_found(st.session_state.get(f"{key}-file"))


def _key(loaded: LoadedTrace) -> str:
    """Results are kept for one state of the record."""
    return f"verified-{loaded.record.id}-{loaded.record.step_through.head_hash}"


def _verify(step_through_id: str) -> None:
    with notices.refusals(SECTION):
        owner = state.owner()
        loaded = loading.load(owner, step_through_id)
        st.session_state[_key(loaded)] = [check.to_plain() for check in checks.verify(owner, loaded)]


def _verify_file(step_through_id: str) -> None:
    upload = st.session_state.get(f"verify-file-{step_through_id}")
    with notices.refusals(FILE):
        loaded = loading.load(state.owner(), step_through_id)
        key = f"{_key(loaded)}-file"
        st.session_state.pop(key, None)
        if upload is not None:
            incoming = exchange.read_file(upload.getvalue())
            st.session_state[key] = [check.to_plain() for check in checks.against_file(loaded, incoming)]


def _show_found(found: list[dict[str, Any]] | None) -> None:
    if not found:
        return
    results = [Check(**plain) for plain in found]
    overall = next(
        (result for result in ("failed", "not checked") if any(c.result == result for c in results)), "verified"
    )
    severity = {"verified": "success", "failed": "error", "not checked": "warning"}[overall]
    notices.show(severity, WORDS[overall])
    for check in results:
        st.markdown(
            f"{SIGNS[check.result]} **{labels.markdown(check.what)}: {check.result}.** {labels.markdown(check.sentence)}"
        )

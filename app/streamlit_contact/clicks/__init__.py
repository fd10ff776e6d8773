"""Clicks on charts that are HTML, which Streamlit shows but does not listen to."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app.streamlit_contact import scripts


def listen(chart: str, on_pick: Callable[[], None]) -> None:
    """Calls `on_pick` when a cell of the chart of this name is clicked; `picked(chart)` then says which."""
    instead = "charts do not react to clicks; the select boxes beside them do the same"
    scripts.listen("clicks", f"{chart}-clicks", instead, data=chart, on_pick_change=on_pick)


def picked(chart: str) -> str | None:
    """In an `on_pick` callback: the data-pick of the cell that was clicked."""
    found = st.session_state.get(f"{chart}-clicks")
    return None if found is None else found.get("pick")

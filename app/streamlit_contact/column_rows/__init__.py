"""The columns of a table as rows: each with its small distribution, and with what a person can change by one press.

What is changed is kept by the browser and sent as a whole each time, so that no quick press is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.streamlit_contact import scripts

EDITABLE = ("role", "kind", "unit")


def show(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether they could be drawn. rows: what column_rows.js reads, each with its `id`."""
    instead = "columns are described in a grid instead of rows"
    return scripts.put("column_rows", key, instead, data={"key": key, "rows": list(rows)}, on_edits_change=_note)


def _note() -> None:
    """Streamlit keeps what a script sends only where a callback is named; `edits` reads it."""


def edits(key: str) -> dict[str, dict[str, str]]:
    """id of a row → what was changed in it. It comes from a browser, so only texts of known settings are taken."""
    found = st.session_state.get(key)
    changed = found.get("edits") if isinstance(found, Mapping) else None
    if not isinstance(changed, Mapping):
        return {}
    return {
        str(row): {name: value for name in EDITABLE if isinstance(value := settings.get(name), str)}
        for row, settings in changed.items()
        if isinstance(settings, Mapping)
    }

"""Clicks on charts that are HTML, which Streamlit shows but does not listen to.

The script comes from this server as a file of its own, so that the pages' content security policy can go on forbidding
any other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

PACKAGE, NAME = "l2m", "clicks"
MANIFEST = ComponentManifest(PACKAGE, "1", [ComponentConfig(NAME, Path(__file__).parent.name)])


def listen(chart: str, on_pick: Callable[[], None]) -> None:
    """Has `on_pick` called when a cell of the chart of this name is clicked; `picked(chart)` then says which."""
    manager = get_bidi_component_manager()
    if manager.get_component_asset_root(f"{PACKAGE}.{NAME}") is None:
        manager.register_from_manifest(MANIFEST, Path(__file__).parent.parent)
        component(f"{PACKAGE}.{NAME}", js="clicks.js", isolate_styles=False)
    with st.container(key=f"{chart}-listener"):
        # As the function that `component` returns would, which registers the script anew each time it is made.
        st._bidi_component(  # type: ignore[attr-defined]
            f"{PACKAGE}.{NAME}", key=f"{chart}-clicks", isolate_styles=False, data=chart, on_pick_change=on_pick
        )


def picked(chart: str) -> str | None:
    """In an `on_pick` callback: the data-pick of the cell that was clicked."""
    found = st.session_state.get(f"{chart}-clicks")
    return None if found is None else found.get("pick")

"""Clicks on charts that are HTML, which Streamlit shows but does not listen to.

The script comes from this server as a file of its own, so that the pages' content security policy can go on forbidding
any other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from app.streamlit_contact.insides import InsideMissing, attribute, inside

PACKAGE, NAME = "l2m", "clicks"
COMPONENT = f"{PACKAGE}.{NAME}"
_mount: Callable[..., Any] | None = None


def listen(chart: str, on_pick: Callable[[], None]) -> None:
    """Calls `on_pick` when a cell of the chart of this name is clicked; `picked(chart)` then says which."""
    try:
        mount = _component()
    except InsideMissing as missing:
        missing.log("charts do not react to clicks; the select boxes beside them do the same")
        return
    with st.container(key=f"{chart}-listener"):
        mount(key=f"{chart}-clicks", data=chart, on_pick_change=on_pick)


def picked(chart: str) -> str | None:
    """In an `on_pick` callback: the data-pick of the cell that was clicked."""
    found = st.session_state.get(f"{chart}-clicks")
    return None if found is None else found.get("pick")


def _component() -> Callable[..., Any]:
    """The function that puts the component on a page. It is made once, since making it registers the script anew."""
    global _mount
    manager = inside("streamlit.components.v2.get_bidi_component_manager", "get_bidi_component_manager")()
    if attribute(manager, "get_component_asset_root")(COMPONENT) is None:
        attribute(manager, "register_from_manifest")(_manifest(), Path(__file__).parent.parent)
        _mount = None
    if _mount is None:
        _mount = inside("streamlit.components.v2", "component")(COMPONENT, js="clicks.js", isolate_styles=False)
    return _mount


def _manifest() -> Any:
    """Where the script lies, as an installed package's own pyproject.toml would say it."""
    config = inside("streamlit.components.v2.manifest_scanner", "ComponentConfig")(NAME, Path(__file__).parent.name)
    return inside("streamlit.components.v2.manifest_scanner", "ComponentManifest")(PACKAGE, "1", [config])

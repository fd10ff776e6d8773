"""Scripts of our own that Streamlit's components do not have, each a file that this server serves.

So the pages' content security policy can go on forbidding all other scripts. Each lies in a folder of its name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from app.streamlit_contact.insides import InsideMissing, attribute, inside

PACKAGE = "l2m"
NAMES = ("clicks", "column_rows", "no_answer", "popovers", "top", "typed_numbers")
_mounts: dict[str, Callable[..., Any]] = {}


def component_of(name: str) -> str:
    """How Streamlit calls the component with this script."""
    return f"{PACKAGE}.{name}"


def put(name: str, key: str, instead: str, **given: Any) -> bool:
    """Whether the component could be put on the page. instead: what there is without it, for the log."""
    try:
        mount = mount_of(name)
    except InsideMissing as missing:
        missing.log(instead)
        return False
    mount(key=key, **given)
    return True


def listen(name: str, key: str, instead: str, **given: Any) -> None:
    """Puts a component that shows nothing on the page, where it takes no room (page.css)."""
    with st.container(key=f"{key}-listener"):
        put(name, key, instead, **given)


def mount_of(name: str) -> Callable[..., Any]:
    """The function that puts the component on a page. It is made once, since making it registers the script anew."""
    component = component_of(name)
    manager = inside("streamlit.components.v2.get_bidi_component_manager", "get_bidi_component_manager")()
    if attribute(manager, "get_component_asset_root")(component) is None:
        attribute(manager, "register_from_manifest")(_manifest(), Path(__file__).parent)
        _mounts.clear()
    if component not in _mounts:
        make = inside("streamlit.components.v2", "component")
        _mounts[component] = make(component, js=f"{name}.js", isolate_styles=False)
    return _mounts[component]


def _manifest() -> Any:
    """Where the scripts lie, as an installed package's own pyproject.toml would say it."""
    config = inside("streamlit.components.v2.manifest_scanner", "ComponentConfig")
    manifest = inside("streamlit.components.v2.manifest_scanner", "ComponentManifest")
    return manifest(PACKAGE, "1", [config(name, name) for name in NAMES])

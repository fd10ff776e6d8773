"""Downloads that are built when asked for, and handed to the browser that asked only.

Streamlit serves a download under an address that answers anyone who knows it. Here the file's name on the server is
remembered together with the browser it was made for, and the guard in `app/asgi.py` refuses every other one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st
from streamlit.runtime.memory_media_file_storage import _calculate_file_id

from app.host.cache import Bounded
from app.ui import state

_allowed = Bounded(10_000)


def button(
    label: str,
    make: Callable[[], str | bytes],
    file_name: str,
    mime: str,
    key: str,
    width: Literal["stretch", "content"] = "content",
) -> None:
    """A download button; `make` gives the file's content and runs when it is pressed, outside the page's script."""
    browser = state.browser()

    def build() -> bytes:
        content = make()
        data = content.encode() if isinstance(content, str) else content
        allow(_calculate_file_id(data, mime, file_name), browser)
        return data

    icon = ":material/download:"
    st.download_button(label, build, file_name, mime, key, icon=icon, on_click="ignore", width=width)


def allow(file_id: str, browser: str) -> None:
    _allowed.get((file_id, browser), lambda: True)


def is_allowed(file_id: str, browser: str | None) -> bool:
    return browser is not None and bool(_allowed.peek((file_id, browser)))


def file_name(*parts: str, ending: str) -> str:
    """A file name without surprises: letters, digits, dashes."""
    text = "-".join("".join(c if c.isascii() and c.isalnum() else "-" for c in part).strip("-") for part in parts)
    while "--" in text:
        text = text.replace("--", "-")
    return f"{text[:80].strip('-') or 'l2m'}.{ending}"

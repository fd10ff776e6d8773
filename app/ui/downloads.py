"""Download buttons whose content is made when it is asked for, and handed to the browser that asked only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st

from app.host import downloads
from app.streamlit_contact import media
from app.ui import state


def button(
    label: str,
    make: Callable[[], str | bytes],
    file_name: str,
    mime: str,
    key: str,
    width: Literal["stretch", "content"] = "content",
) -> None:
    """A download button. `make` returns the file's content; it runs when the button is pressed, outside the page's script."""
    browser = state.browser()

    def build() -> bytes:
        content = make()
        data = content.encode() if isinstance(content, str) else content
        downloads.allow(media.file_id(data, mime, file_name), browser)
        return data

    icon = ":material/download:"
    st.download_button(label, build, file_name, mime, key, icon=icon, on_click="ignore", width=width)


def file_name(*parts: str, ending: str) -> str:
    """A file name without surprises: letters, digits, dashes."""
    text = "-".join("".join(c if c.isascii() and c.isalnum() else "-" for c in part).strip("-") for part in parts)
    while "--" in text:
        text = text.replace("--", "-")
    return f"{text[:80].strip('-') or 'l2m'}.{ending}"

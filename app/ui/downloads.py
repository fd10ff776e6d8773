"""Download buttons whose content is made when it is asked for, and handed to the browser that asked only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st

from app.host import downloads, services
from app.streamlit_contact import media
from app.ui import state


def button(
    label: str,
    make: Callable[[], str | bytes],
    file_name: str,
    mime: str,
    key: str,
    act: tuple[str, str],
    width: Literal["stretch", "content"] = "content",
    type: Literal["secondary", "tertiary"] = "secondary",
) -> None:
    """A download button. `make` returns the file's content; it runs when the button is pressed, outside the page's script.

    act: what the audit trail tells of it, before the file is handed out: a kind, and the id of what is exported.
    """
    owner, browser = state.owner(), state.browser()
    kind, subject = act

    def build() -> bytes:
        content = make()
        services.get().store.audit.record(owner, kind, subject, file=file_name.rpartition(".")[2])
        data = content.encode() if isinstance(content, str) else content
        downloads.allow(media.file_id(data, mime, file_name), browser)
        return data

    icon = ":material/download:"
    st.download_button(label, build, file_name, mime, key, icon=icon, on_click="ignore", width=width, type=type)


def file_name(*parts: str, ending: str) -> str:
    """A file name without surprises: letters, digits, dashes."""
    text = "-".join("".join(c if c.isascii() and c.isalnum() else "-" for c in part).strip("-") for part in parts)
    while "--" in text:
        text = text.replace("--", "-")
    return f"{text[:80].strip('-') or 'l2m'}.{ending}"

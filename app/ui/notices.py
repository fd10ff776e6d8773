"""The banner, messages after an action, and errors beside the fields that can fix them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from app.ui import labels, state
from l2m_core.errors import L2MError

RESEARCH_ONLY = "Research use only: decision support to think with, not a medical device. It ranks options; you decide."
RESEARCH_SHORT = "research use only, not a medical device"
_ICONS = {
    "error": ":material/error:",
    "warning": ":material/warning:",
    "info": ":material/info:",
    "success": ":material/check_circle:",
}


def research_banner() -> None:
    """The banner of every page that gives advice."""
    st.caption(f":material/science: {RESEARCH_ONLY}")


def show(severity: str, sentence: str) -> None:
    """A sentence that may quote names and values, shown as it is written."""
    paragraphs = "\n\n".join(labels.markdown(line) for line in sentence.splitlines() if line.strip())
    {"error": st.error, "warning": st.warning, "info": st.info, "success": st.success}[severity](
        paragraphs, icon=_ICONS[severity]
    )


def show_waiting(placeholder: str = "page") -> None:
    """Shows the messages that actions left for this placeholder of the page."""
    for notice in state.take_notices(placeholder):
        show(notice["severity"], notice["sentence"])


@contextmanager
def refusals(placeholder: str = "page") -> Iterator[None]:
    """Around an action: an L2MError becomes a message at its placeholder."""
    try:
        yield
    except L2MError as refusal:
        state.notify("error", str(refusal), placeholder)


@contextmanager
def shown_refusals() -> Iterator[None]:
    """Around a part of a page: an L2MError is shown there, and the rest of the page is drawn."""
    try:
        yield
    except L2MError as refusal:
        show("error", str(refusal))

"""The banner, messages after an action, and refusals beside where they can be mended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from app.ui import labels, state
from l2m_core.errors import L2MError
from l2m_core.step_through import words

RESEARCH_SHORT = "research use only, not a medical device"
_ICONS = {
    "error": ":material/error:",
    "warning": ":material/warning:",
    "info": ":material/info:",
    "success": ":material/check_circle:",
}


def research_banner() -> None:
    """On every page that advises."""
    st.caption(f":material/science: {words.RESEARCH_ONLY}")


def show(severity: str, sentence: str) -> None:
    """Shows a sentence as it is written, since it may quote names and values."""
    paragraphs = "\n\n".join(labels.markdown(line) for line in sentence.splitlines() if line.strip())
    {"error": st.error, "warning": st.warning, "info": st.info, "success": st.success}[severity](
        paragraphs, icon=_ICONS[severity]
    )


def show_waiting(section: str = "page") -> None:
    """Shows the messages that actions left for this section of the page.

    Their container is there without any too: the browser knows what is opened below by its place, and would close it, and
    drop what is being typed in it, when a message comes or goes.
    """
    with st.container():
        for notice in state.take_notices(section):
            show(notice["severity"], notice["sentence"])
            if notice["severity"] == "success":  # in view wherever the page is scrolled to
                st.toast(labels.markdown(notice["sentence"]), icon=_ICONS["success"])


@contextmanager
def refusals(section: str = "page") -> Iterator[None]:
    """Around an action: a refusal becomes a message in the section where it can be mended, and nothing else is lost."""
    try:
        yield
    except L2MError as refusal:
        state.notify("error", str(refusal), section)


@contextmanager
def shown_refusals() -> Iterator[None]:
    """Around a part of a page: a refusal is shown there, and the rest of the page is drawn."""
    try:
        yield
    except L2MError as refusal:
        show("error", str(refusal))

"""A new view begins at its top: Streamlit leaves a page scrolled as it was, which on a phone hides what comes first."""

from __future__ import annotations

import streamlit as st

from app.streamlit_contact.insides import InsideMissing
from app.streamlit_contact.scripts import mount_of


def begin_at_the_top(view: str) -> None:
    """Scrolls to the top when this view, by its name, is shown after another; drawn again, it stays where it is."""
    try:
        mount = mount_of("top")
    except InsideMissing as missing:
        missing.log("a new view is shown as far down as the one before was scrolled")
        return
    with st.container(key="top-listener"):
        mount(key="top", data=view)

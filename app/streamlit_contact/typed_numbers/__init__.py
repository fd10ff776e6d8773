"""Numbers that a browser would change while they are typed: of 4,5 its number field makes 45, and nobody is told."""

from __future__ import annotations

import streamlit as st

from app.streamlit_contact.insides import InsideMissing
from app.streamlit_contact.scripts import mount_of


def refuse_what_is_left_out() -> None:
    """Has every number field of the page emptied, with words, once the browser leaves out a part of what is entered."""
    try:
        mount = mount_of("typed_numbers")
    except InsideMissing as missing:
        missing.log("a comma that is typed into a number may be left out by the browser, as 45 of 4,5")
        return
    with st.container(key="typed-numbers-listener"):
        mount(key="typed-numbers")

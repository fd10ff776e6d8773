"""Headings of what is drawn anew at every step."""

from __future__ import annotations

from html import escape

import streamlit as st


def heading(text: str) -> None:
    """Looks as Streamlit's, which makes up an address for itself whenever it is drawn, whether it is wanted or not."""
    st.html(f'<h3 class="l2m-heading">{escape(text)}</h3>')

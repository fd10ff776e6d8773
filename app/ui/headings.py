"""Headings that are redrawn at every step."""

from __future__ import annotations

from html import escape

import streamlit as st


def heading(text: str) -> None:
    """A heading that looks like Streamlit's, without the anchor that Streamlit computes at every run."""
    st.html(f'<h3 class="l2m-heading">{escape(text)}</h3>')

"""A number in a box, with a detail below it."""

from __future__ import annotations

import streamlit as st


def metric(label: str, value: str, detail: str | None = None) -> None:
    st.metric(label, value, border=True, height="stretch", delta=detail, delta_color="off", delta_arrow="off")

"""Numbers in boxes, each with a detail below it."""

from __future__ import annotations

from contextlib import AbstractContextManager

import streamlit as st


def boxes() -> AbstractContextManager[object]:
    """Four beside each other, on a phone two."""
    return st.grid(4, gap="small", min_column_width=150)


def metric(label: str, value: str, detail: str | None = None) -> None:
    st.metric(label, value, border=True, height="stretch", delta=detail, delta_color="off", delta_arrow="off")

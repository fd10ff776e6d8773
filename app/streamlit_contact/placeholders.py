"""A block whose new content takes the place of the old at once."""

from __future__ import annotations

from typing import Any, TypeAlias

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

Block: TypeAlias = DeltaGenerator


def placeholder(name: str, content: Any) -> Block:
    """A block for `content` (any value that tells this content from another). Other content gets another kind of block.

    Streamlit keeps a chart or widget that another one replaces until the script has ended, because it might come back
    further down. People would see both, and the page would jump. A block of another kind removes what was in it.
    """
    key = f"{name}-placeholder"
    is_column, last = st.session_state.get(key, (False, None))
    if last != content:
        is_column = not is_column
        st.session_state[key] = (is_column, content)
    return st.columns(1)[0] if is_column else st.container(horizontal=True).container()

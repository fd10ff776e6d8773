"""Where something that changes is drawn, such that the new takes the place of the old at once."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def place(slot: str, shown: Any) -> DeltaGenerator:
    """A block for `shown` (whatever tells this content from another), of another kind than the one with other content.

    Streamlit keeps a chart or widget that another one replaces until the script has ended, since it might come back
    further down: people would see both, and the page jump. A block of another kind takes what was in it away.
    """
    name = f"{slot}-place"
    kind, last = st.session_state.get(name, (False, None))
    if last != shown:
        kind = not kind
        st.session_state[name] = (kind, shown)
    return st.columns(1)[0] if kind else st.container(horizontal=True).container()

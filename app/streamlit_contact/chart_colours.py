"""Markers for which Streamlit's front end puts the theme's colours into a Plotly figure, light or dark."""

from __future__ import annotations

from app.streamlit_contact.insides import InsideMissing, inside


def _marker(name: str, plain: str) -> str:
    """plain: the light theme's colour, taken where this version of Streamlit has no such marker."""
    try:
        return str(inside("streamlit.elements.lib.streamlit_plotly_theme", name))
    except InsideMissing as missing:
        missing.log("charts keep the light theme's colours")
        return plain


CATEGORY_0 = _marker("CATEGORY_0", "#0b6e7f")
CATEGORY_1 = _marker("CATEGORY_1", "#7b8a92")
CATEGORY_2 = _marker("CATEGORY_2", "#b4540a")
CATEGORY_3 = _marker("CATEGORY_3", "#5b4b8a")
GRAY_70 = _marker("GRAY_70", "#4d5c65")

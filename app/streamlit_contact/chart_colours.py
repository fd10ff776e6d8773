"""Markers for which Streamlit's front end puts the theme's colours into a Plotly figure, light or dark."""

from __future__ import annotations

from app.streamlit_contact.insides import InsideMissing, inside


def markers() -> tuple[str, ...]:
    """The light theme's colours where this version of Streamlit has no such markers."""
    try:
        return tuple(inside("streamlit.elements.lib.streamlit_plotly_theme", name) for name in NAMES)
    except InsideMissing as missing:
        missing.log("charts keep the light theme's colours")
        return LIGHT


NAMES = ("CATEGORY_0", "CATEGORY_1", "CATEGORY_2", "CATEGORY_3", "GRAY_70")
LIGHT = ("#0b6e7f", "#7b8a92", "#b4540a", "#5b4b8a", "#4d5c65")
CATEGORY_0, CATEGORY_1, CATEGORY_2, CATEGORY_3, GRAY_70 = markers()


def on_paper(colour: str) -> str:
    """The light theme's colour of a marker; any other colour as it is."""
    return dict(zip(markers(), LIGHT, strict=True)).get(colour, colour)

"""A new view begins at its top: Streamlit leaves a page scrolled as it was, which on a phone hides what comes first."""

from __future__ import annotations

from app.streamlit_contact import scripts


def begin_at_the_top(view: str) -> None:
    """Scrolls to the top when this view, by its name, is shown after another; drawn again, it stays where it is."""
    scripts.listen("top", "top", "a new view is shown as far down as the one before was scrolled", data=view)

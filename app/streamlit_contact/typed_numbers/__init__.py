"""Numbers that a browser would change while they are typed: of 4,5 its number field makes 45, and nobody is told."""

from __future__ import annotations

from app.streamlit_contact import scripts


def refuse_what_is_left_out() -> None:
    """Has every number field of the page emptied, with words, once the browser leaves out a part of what is entered."""
    instead = "a comma that is typed into a number may be left out by the browser, as 45 of 4,5"
    scripts.listen("typed_numbers", "typed-numbers", instead)

"""What a button opens beside it: Streamlit draws it at the page's end, where the Tab key comes only after all else."""

from __future__ import annotations

from app.streamlit_contact import scripts


def open_to_the_tab_key() -> None:
    """Has Tab go from a button into what it opened and on to what follows it, and Shift+Tab back."""
    scripts.listen("popovers", "popovers", "what a button opens is reached by the Tab key only at the page's end")

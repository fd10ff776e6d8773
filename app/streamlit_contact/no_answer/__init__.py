"""What the page says while nobody answers: Streamlit asks for the internet, which L2M does not need, or names its commands."""

from __future__ import annotations

from app.streamlit_contact import scripts


def say_in_our_words() -> None:
    """Has the dialog say what became of one's work, and what to do, when the server does not answer."""
    scripts.listen("no_answer", "no-answer", "a server that does not answer is told of in Streamlit's words")

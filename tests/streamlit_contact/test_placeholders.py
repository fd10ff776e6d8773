"""What takes the place of the old at once."""

from streamlit.testing.v1 import AppTest


def kinds_drawn() -> None:
    import streamlit as st

    from app.streamlit_contact.placeholders import placeholder

    placeholder("slot", st.session_state.get("content")).write("here")


def test_other_content_gets_another_kind_of_block_and_the_same_content_the_same() -> None:
    app = AppTest.from_function(kinds_drawn)
    columns = []
    for content in ("one", "one", "two", "two", "one"):
        app.session_state["content"] = content
        columns.append(len(app.run().columns))
    assert columns == [1, 1, 0, 0, 1]

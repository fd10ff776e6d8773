"""A page that uses everything in app/streamlit_contact which draws. It is served by the tests beside it."""

import streamlit as st

from app.streamlit_contact.batched_delivery import batched_delivery
from app.streamlit_contact.clicks import listen, picked
from app.streamlit_contact.placeholders import placeholder
from app.streamlit_contact.top import begin_at_the_top


def count() -> None:
    st.session_state["drawn"] = st.session_state.get("drawn", 0) + 1


def note_pick() -> None:
    st.session_state["pick"] = picked("chart")


def fail() -> bytes:
    raise ValueError("potassium 9.9")


st.file_uploader("File", key="file")
st.button("Again", key="again", on_click=count)
with batched_delivery():
    for number in range(20):
        st.write(f"element {number} of run {st.session_state.get('drawn', 0)}")
    listen("chart", note_pick)
    begin_at_the_top("page")
    placeholder("slot", st.session_state.get("drawn", 0)).text_input("Value", key="value")
    st.download_button("Download", lambda: b"a,b\n1,2\n", "table.csv", "text/csv", key="download", on_click="ignore")
    st.download_button("Fails", fail, "fails.csv", "text/csv", key="fails", on_click="ignore")
if st.session_state.get("value") == "fail":
    raise ValueError("potassium 9.9")

"""Step-through: one patient, one test at a time."""

import streamlit as st

st.title("Step-through")

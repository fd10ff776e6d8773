"""The only folder that uses parts of Streamlit which its documentation does not promise.

Everywhere else the app writes `import streamlit as st` and uses the documented names. Each part used here is looked up
by `insides.inside` when it is needed. Where an installed version lacks it, a plainer way is taken, and the log says so
once. The tests in `tests/streamlit_contact` hold both against the installed package.
"""

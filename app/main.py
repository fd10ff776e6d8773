"""The script behind every page: asks for sign-in, draws the navigation, and runs the page."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app.host import services
from app.streamlit_contact.no_answer import say_in_our_words
from app.streamlit_contact.popovers import open_to_the_tab_key
from app.streamlit_contact.typed_numbers import refuse_what_is_left_out
from app.ui import labels, notices, state
from l2m_core.errors import L2MError

VIEWS = Path(__file__).parent / "views"
STYLE = Path(__file__).parent / "ui" / "page.css"
# File, title, icon, what it is for. A page is listed as soon as its file is there.
PAGES = (
    ("cohort", "Cohort", ":material/table_chart:", "Open or upload a table of earlier patients and check it."),
    ("step_through", "Step-through", ":material/footprint:", "One patient, one test at a time, with suggestions."),
    ("traces", "Traces", ":material/history:", "Recorded step-throughs: replay, compare, export."),
    ("evidence", "Evidence", ":material/query_stats:", "How well suggestions work on your own cohort."),
    ("experiments", "Experiments", ":material/experiment:", "Models and training jobs."),
    ("about", "About", ":material/info:", "Limits, intended use, data protection, versions."),
)


def main() -> None:
    st.set_page_config(page_title="Learning to Measure", page_icon="👣", layout="wide")
    st.html(STYLE)
    try:
        if state.sign_in_is_required():
            ask_to_sign_in()
            return
        state.is_active()
        refuse_what_is_left_out()
        say_in_our_words()
        open_to_the_tab_key()
        pages = [view(*entry) for entry in PAGES if (VIEWS / f"{entry[0]}.py").exists()]
        if state.signed_in_user() is not None:
            pages.append(st.Page(offer_to_sign_out, title="Sign out", icon=":material/logout:", url_path="sign_out"))
        page = st.navigation(pages, position="top")
        if state.browser_of_cookie() is None and state.signed_in_user() is None:
            notices.show(
                "warning", "This browser keeps no cookies for this page, so what you do here is lost with a reload."
            )
        if services.get().loss:
            notices.show("error", services.get().loss)
        page.run()
    except L2MError as problem:
        notices.show("error", str(problem))
    state.drawn()


def view(name: str, title: str, icon: str, purpose: str) -> st.Page:
    return st.Page(VIEWS / f"{name}.py", title=title, icon=icon, url_path=name, help=purpose, default=name == "cohort")


def ask_to_sign_in() -> None:
    st.title("Learning to Measure")
    problem = state.sign_in_problem()
    if problem:
        notices.show("error", f"Nobody can sign in now. The administrator must mend the sign-in file, which {problem}.")
        st.button("Try again", key="try-again", icon=":material/refresh:")
        return
    st.write("Sign in to see your cohorts and step-throughs.")
    st.button("Sign in", key="sign-in", on_click=st.login, type="primary", icon=":material/login:")


def offer_to_sign_out() -> None:
    st.title("Sign out", anchor=False)
    name = state.signed_in_name()
    who = f"You are signed in as {labels.markdown(name)}." if name else "You are signed in."
    st.write(f"{who} What you saved stays, and is here again when you sign in.")
    st.button("Sign out", key="sign-out", on_click=state.sign_out, type="primary", icon=":material/logout:")


# A process that the server spawns runs this file again, by another name and without a browser.
if __name__ == "__main__":
    main()

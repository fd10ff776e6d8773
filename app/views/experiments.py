"""Experiments: models, and the jobs that train and measure them. For researchers."""

from __future__ import annotations

import streamlit as st

from app.host import services
from app.ui import notices, state
from app.ui.experiments import models, starting, watching


def show() -> None:
    owner = state.owner()
    st.title("Experiments", anchor=False)
    allowed = services.get().runner.may_train(owner)
    if not allowed:
        notices.show("info", _why_not())
    jobs = watching.jobs_of(owner)
    names = [*(["Start a job"] if allowed else []), "Jobs", "Models"]
    # The page opens at the jobs while one is active.
    st.session_state.setdefault(starting.TABS, "Jobs" if any(job.active for job in jobs) else names[0])
    tabs = dict(zip(names, st.tabs(names, key=starting.TABS, on_change="rerun"), strict=True))
    parts = {
        "Start a job": lambda: starting.show(owner),
        "Jobs": lambda: watching.show(owner, jobs),
        "Models": lambda: models.show(owner),
    }
    for name, tab in tabs.items():
        if tab.open:
            with tab, notices.shown_refusals():
                parts[name]()


def _why_not() -> str:
    if services.get().settings.training == "signed-in":
        return "Training jobs are for those who are signed in. Models and their cards are below."
    return "Training jobs are switched off on this installation. Models and their cards are below."


show()

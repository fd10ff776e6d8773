"""A model reads a cohort once, which takes seconds for a large one. It begins as soon as a page shows the cohort, and
whoever comes before it is done sees how far it is."""

from __future__ import annotations

import time

import streamlit as st

from app.host import services
from app.host.services import Conditioned
from app.store import StoredCohort
from app.ui import labels
from app.ui.step_through import step_answers
from app.ui.step_through.stored_events import Record
from l2m_core.memory import L2M

FITTING = (
    ":material/hourglass_top: A step-through can begin. Models of this cohort's own rows are still being fitted; one begun "
    "before they are goes on without them."
)
LOOK = 0.1  # seconds between looks of a script that waits
LOOK_AGAIN = 1.0  # … of a page that does not


def show_reading(owner: str, stored: StoredCohort, model: L2M) -> None:
    """Has the model read the cohort in the background, and shows how far it is, and whether its council is still to come.
    Nothing where all is ready."""
    here = services.get()
    if here.has_read(stored, model):
        # Not looked at again each second: fitting may take minutes.
        if here.is_fitting(stored, model):
            st.caption(FITTING)
        return
    here.begin_reading(owner, stored, model)
    # So high also when it has nothing to say any more.
    with st.container(key="cohort-reading", height=64, border=False):
        st.fragment(_show_share, run_every=LOOK_AGAIN)(owner, stored, model)


def _show_share(owner: str, stored: StoredCohort, model: L2M) -> None:
    here = services.get()
    if (share := here.reading(stored, model)) is not None:
        st.progress(share, text=progress_words(owner, stored, model, share))
    elif here.is_fitting(stored, model):
        st.caption(FITTING)
    elif here.has_read(stored, model):
        st.caption(":material/check: The model has read this cohort: a step-through begins at once.")


def wait_until_read(owner: str, stored: StoredCohort, model: L2M) -> None:
    """Returns once the model has read the cohort, or cannot; meanwhile shows how far it is.

    Use it while a page is drawn, not in a callback. A press meanwhile ends the run; the reading goes on.
    """
    here = services.get()
    if here.has_read(stored, model):
        return
    here.begin_reading(owner, stored, model)
    bar = st.progress(0.0, text=progress_words(owner, stored, model, 0.0))
    while (share := here.reading(stored, model)) is not None:
        bar.progress(share, text=progress_words(owner, stored, model, share))
        time.sleep(LOOK)
    bar.empty()


def progress_words(owner: str, stored: StoredCohort, model: L2M, share: float) -> str:
    cohort = services.get().cohort(owner, stored)
    rows, read = len(cohort), model.rows_read(cohort)
    of_rows = f"{rows:,} rows" if read == rows else f"{read:,} of its {rows:,} rows"
    if services.get().awaits_its_turn(stored, model):  # else it would seem stuck at 0% for as long as the other takes
        return f"The model reads another cohort first, then this one, {of_rows}"
    return f"The model reads the cohort, {of_rows}: {labels.percent(share)} done"


def condition(owner: str, record: Record) -> Conditioned:
    """As `step_answers.condition`; shows meanwhile how far the model is."""
    wait_until_read(owner, record.cohort, step_answers.model_of(owner, record))
    return step_answers.condition(owner, record)

"""A model reads a cohort once, which takes seconds for a large one: meanwhile the page shows a spinner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from app.host import services
from app.host.services import Conditioned
from app.store import StoredCohort
from app.ui.step_through import step_answers
from app.ui.step_through.stored_events import Record
from l2m_core.memory import L2M


@contextmanager
def spinner_while_reading(owner: str, stored: StoredCohort, model: L2M) -> Iterator[None]:
    """Show a spinner around code that has the model read the cohort; nothing where it has read it.

    Use it while a page is drawn, not in a callback: on exit, a waiting press may end the run.
    """
    here = services.get()
    if here.has_read(stored, model):
        yield
        return
    with st.spinner(f"Reading the cohort's {len(here.cohort(owner, stored)):,} rows …"):
        yield


def condition(owner: str, record: Record) -> Conditioned:
    """As `step_answers.condition`, with a spinner meanwhile."""
    with spinner_while_reading(owner, record.cohort, step_answers.model_of(owner, record)):
        return step_answers.condition(owner, record)

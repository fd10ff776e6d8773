"""A press that turns to another page gets there, also where a timer of the page before asked for that page meanwhile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from app.ui import state

STEP = "views/step_through.py"


@pytest.fixture
def went(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages that Streamlit was told to turn to."""
    pages: list[str] = []
    monkeypatch.setattr(state, "st", SimpleNamespace(session_state={}, switch_page=pages.append))
    return pages


def test_a_turn_that_was_lost_is_made_again_until_the_page_is_there(went: list[str]) -> None:
    state.turn_to(STEP)
    state.keep_turning("")  # the timer's request won: the page before is drawn once more
    assert went == [STEP, STEP]
    state.keep_turning("step_through")
    state.keep_turning("traces")  # where people went on their own afterwards
    assert went == [STEP, STEP]


def test_who_turned_to_nothing_stays(went: list[str]) -> None:
    state.keep_turning("cohort")
    assert went == []

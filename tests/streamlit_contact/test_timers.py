"""What a page's timer asks for is dropped once that page has been left, and only then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests
from streamlit.runtime.state import SessionState

from app.streamlit_contact import insides, timers

BEFORE, NEW = "hash of the page before", "hash of the new page"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[RerunData]]:
    """What Streamlit's own run was given, with both methods replaced."""
    given: list[RerunData] = []
    monkeypatch.setattr(ScriptRequests, timers.TAKE, getattr(ScriptRequests, timers.TAKE))  # put back
    monkeypatch.setattr(ScriptRunner, timers.RUN, lambda self, rerun_data: given.append(rerun_data))
    timers.keep_timers_to_their_page()
    yield given


def timer(page: str) -> RerunData:
    return RerunData(page_script_hash=page, fragment_id="of a timer", is_auto_rerun=True)


def waiting(*requests: RerunData) -> RerunData:
    """What is run of requests that come before the first of them is."""
    queue = ScriptRequests()
    assert all(queue.request_rerun(request) for request in requests)
    return queue.on_scriptrunner_ready().rerun_data


def test_a_page_that_is_about_to_be_drawn_is_not_taken_back_by_a_timer(ran: list[RerunData]) -> None:
    turned = waiting(RerunData(page_script_hash=NEW), timer(BEFORE))
    assert turned.page_script_hash == NEW and not turned.fragment_id_queue


def test_a_turn_that_comes_after_a_timer_wins_too(ran: list[RerunData]) -> None:
    turned = waiting(timer(BEFORE), RerunData(page_script_hash=NEW))
    assert turned.page_script_hash == NEW and not turned.fragment_id_queue


def test_a_press_in_a_fragment_waits_beside_a_timer(ran: list[RerunData]) -> None:
    both = waiting(timer(NEW), RerunData(page_script_hash=NEW, fragment_id="of a press"))
    assert both.fragment_id_queue == ["of a timer", "of a press"]


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        (timer(BEFORE), False),
        (timer(NEW), True),
        (RerunData(page_script_hash=BEFORE), True),  # somebody goes back
    ],
)
def test_only_a_timer_of_another_page_than_the_one_drawn_is_not_run(
    asked: RerunData, runs: bool, ran: list[RerunData]
) -> None:
    pages: Any = PagesManager("app/main.py")
    pages.set_current_page_script_hash(NEW)
    unused: Any = None
    runner = ScriptRunner(
        "a session", "app/main.py", SessionState(), unused, unused, RerunData(), unused, unused, pages, unused
    )
    getattr(runner, timers.RUN)(waiting(asked))
    assert bool(ran) == runs


def test_without_the_parts_that_it_mends_nothing_changes_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(insides, "logged", set())
    taken = getattr(ScriptRequests, timers.TAKE)
    monkeypatch.delattr(ScriptRunner, timers.RUN)
    with caplog.at_level("WARNING", "l2m.app"):
        timers.keep_timers_to_their_page()
    assert "may stay empty until it is reloaded" in caplog.text
    assert getattr(ScriptRequests, timers.TAKE) is taken

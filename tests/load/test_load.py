"""Many people at once, and many one after another, against the real server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.browser import Served, serving
from tests.figures import Keep
from tests.load.traffic import come_and_go, crowd, resident_megabytes

SMALLEST = 2  # of the bundled cohorts, by its place among them
FORGOTTEN_AFTER = 2  # seconds after which this server forgets a closed connection; 120 by default


@pytest.fixture(scope="module")
def served(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    seconds = str(FORGOTTEN_AFTER)
    with serving(
        repository, tmp_path_factory.mktemp("data"), STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL=seconds
    ) as found:
        yield found


def test_a_few_people_at_once_meet_no_error(served: Served) -> None:
    presses = asyncio.run(crowd(served.address, users=3, seconds=6, think=0.8))
    assert presses.errors == []
    assert len(presses.seconds) >= 3
    assert not [line for line in served.lines if "Traceback" in line]


@pytest.mark.reliability
@pytest.mark.timeout(3600)
def test_fifty_people_at_once(repository: Path, tmp_path: Path, figure: Keep) -> None:
    users, seconds, processes = 50, 120, 3
    with serving(repository, tmp_path, processes=processes) as served:
        presses = asyncio.run(crowd(served.address, users, seconds, think=1.0))
    p50, p95 = presses.quantile(0.5), presses.quantile(0.95)
    figure(
        f"load: {users} people stepping through, 1 s of thought, {seconds} s, {processes} serving processes",
        "p95 of a press to the drawn page ≤ 1 s, no error; two cores, the visitors' own work included",
        f"p50 {p50:.2f} s, p95 {p95:.2f} s, {len(presses.seconds)} presses, {len(presses.errors)} errors",
        p95 <= 1 and not presses.errors,
    )
    assert presses.errors == []
    assert p95 <= 1


def soak(served: Served, warm_up: int, sessions: int, example: int = 0) -> tuple[float, float, list[str]]:
    """Megabytes before, megabytes that stayed after the sessions were forgotten, errors."""
    errors = asyncio.run(come_and_go(served.address, warm_up, example))
    time.sleep(3 * FORGOTTEN_AFTER)
    before = resident_megabytes(served.pid)
    errors += asyncio.run(come_and_go(served.address, sessions, example))
    time.sleep((3 if sessions < 100 else 10) * FORGOTTEN_AFTER)
    return before, resident_megabytes(served.pid) - before, errors


def test_a_few_sessions_one_after_another_leave_little_behind(served: Served) -> None:
    # The samples of the cohort that bands are drawn from are made in the background, one by one, and memory rises until then.
    # What visits leave behind shows only after that.
    looks: list[float] = []
    while len(looks) < 20 and (len(looks) < 3 or max(looks[-3:]) - min(looks[-3:]) > 20):
        before, grown, errors = soak(served, warm_up=0, sessions=4, example=SMALLEST)
        looks.append(before + grown)
        assert errors == []
    _, grown, errors = soak(served, warm_up=0, sessions=6, example=SMALLEST)
    assert errors == []
    assert grown <= 100, looks


@pytest.mark.reliability
@pytest.mark.timeout(7200)
def test_five_hundred_sessions_leave_no_memory_behind(served: Served, figure: Keep) -> None:
    warm_up, sessions = 25, 500
    before, grown, errors = soak(served, warm_up, sessions)
    figure(
        f"soak: {sessions} sessions that begin, step once and close",
        "resident memory grows by at most 100 MB, no error",
        f"{grown:+.0f} MB from {before:.0f} MB (after {warm_up} sessions), {len(errors)} errors",
        grown <= 100 and not errors,
    )
    assert errors == []
    assert grown <= 100

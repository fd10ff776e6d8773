"""How long a user waits for the first suggestion on a large cohort: it is read when it is shown, not when Begin is pressed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from app.host.identity import COOKIE
from tests.e2e.browser import chromium_running, events, new_page, press, serving
from tests.figures import Keep
from tests.load.test_step_in_browser import numbers_cohort, visitor_with

pytestmark = [pytest.mark.browser, pytest.mark.reliability]

ROWS, FEATURES = 10_000, 30
LONGEST_READING = 120_000  # milliseconds
AT_ONCE = "a step-through begins at once"


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    with chromium_running(chromium) as running:
        yield running


def first_suggestion(page: Page) -> float:
    """Seconds from Begin to the suggestion, with the field for its result."""
    began = time.perf_counter()
    press(page, "Begin")
    events(page, 1)
    page.get_by_placeholder("expected", exact=False).last.wait_for(timeout=60_000)
    return time.perf_counter() - began


@pytest.mark.timeout(900)
def test_the_first_suggestion_on_a_large_cohort(
    browser: Browser, repository: Path, tmp_path: Path, figure: Keep
) -> None:
    with serving(repository, tmp_path) as served:
        cookie, cohort = visitor_with(numbers_cohort(ROWS, FEATURES), tmp_path)
        page = new_page(browser, height=1400)
        page.context.add_cookies([{"name": COOKIE, "value": cookie, "url": served.address}])
        shown = time.perf_counter()
        page.goto(f"{served.address}/step_through?cohort={cohort}")
        page.get_by_text(AT_ONCE).wait_for(timeout=LONGEST_READING)
        reading = time.perf_counter() - shown
        seconds = first_suggestion(page)
        page.close()
    figure(
        f"the first suggestion, from Begin to the field for its result, {ROWS:,} × {FEATURES} cohort that has been read",
        "≤ 3 s on two cores",
        f"{seconds:.1f} s; the reading, which begins when the cohort is shown, with progress: {reading:.0f} s",
        seconds <= 3,
    )
    assert seconds <= 3

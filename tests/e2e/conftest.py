"""What the journeys share: a browser, a page of a fresh visitor, and a folder whose jobs end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.browser import Served, chromium_running, new_page, serving
from tests.jobs.conftest import end_jobs_in


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    with chromium_running(chromium) as running:
        yield running


@pytest.fixture(scope="package")
def served(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all journeys that need none of their own: each visitor is new, and sees nothing of the others."""
    with serving(repository, tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh visitor's page. A script error on it fails the test, since what is drawn after one may be missing."""
    opened = new_page(browser)
    failures: list[str] = []
    opened.on("pageerror", lambda error: failures.append(str(error)))
    yield opened
    opened.close()
    assert failures == []


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """Where the app keeps its data; a job that a journey leaves behind is ended."""
    yield tmp_path
    end_jobs_in(tmp_path)

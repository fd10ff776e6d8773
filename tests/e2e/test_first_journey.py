"""A newcomer's first two minutes, in a real browser against the real server, model and store."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

pytestmark = pytest.mark.browser

PATIENCE = 120_000  # milliseconds; a busy machine is slow
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@contextmanager
def serving(repository: Path, data_dir: Path, port: int) -> Iterator[str]:
    command = [sys.executable, "-m", "app", "--port", str(port), "--no-browser", "--data-dir", str(data_dir)]
    server = subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if found := re.search(r"http://\S+:\d+", line):
                break
        else:
            pytest.fail("The app ended before it served.")
        yield found.group().replace("localhost", "127.0.0.1")
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)


@pytest.fixture
def page(chromium: Path) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=QUIET)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).last.click()


def events(page: Page, count: int) -> None:
    """The log says how many events are stored; it is shown only after they are."""
    expect(page.get_by_text(re.compile(rf"Log \({count} events?\)"))).to_be_visible(timeout=PATIENCE)


def test_from_a_bundled_cohort_to_a_step_through_that_survives_reload_and_restart(
    page: Page, repository: Path, tmp_path: Path, free_port: int
):
    with serving(repository, tmp_path, free_port) as address:
        page.goto(address)
        page.get_by_role("button", name="Open").first.click()
        press(page, "Start a step-through")
        press(page, "Fill in an example")
        press(page, "Begin")
        events(page, 1)
        expect(page.get_by_text("research use only", exact=False).first).to_be_visible()
        expect(page.get_by_text(re.compile(r"of 100 patients like this")).first).to_be_visible(timeout=PATIENCE)
        press(page, "Not available")
        events(page, 2)
        press(page, "Undo")
        events(page, 3)
        page.reload()
        events(page, 3)
        address_of_the_step_through = page.url
    with serving(repository, tmp_path, free_port):
        page.goto(address_of_the_step_through)
        events(page, 3)
        assert page.get_by_text("Traceback").count() == 0

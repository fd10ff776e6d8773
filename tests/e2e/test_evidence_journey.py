"""Evidence on a bundled cohort: started, left alone over a reload and a restart of the server, read, and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.axe import findings
from tests.e2e.browser import PATIENCE, open_example, press, serving, set_number, settled

pytestmark = pytest.mark.browser

LONG = 5 * PATIENCE  # a worker shares the machine with the server and the browser


def test_evidence_survives_a_reload_and_a_restart_and_is_shown_at_once_on_return(
    page: Page, repository: Path, data_dir: Path, free_port: int
) -> None:
    with serving(repository, data_dir, free_port) as served:
        open_example(page, served.address, number=2)
        page.get_by_role("link", name="Evidence").click()
        press(page, "Settings")
        for name, value in (("Folds", 2), ("Tests, at most", 2), ("Rows to predict, at most", 20)):
            set_number(page, name, value)
        page.keyboard.press("Escape")
        press(page, "Gather evidence")
        # Still at it, or done already: in either case nothing is offered to be started for the first time.
        working_or_done = page.locator(".st-key-evidence-stop button").or_(
            page.get_by_role("button", name="Gather again")
        )
        expect(working_or_done).to_be_visible(timeout=LONG)
        page.reload()
        expect(working_or_done).to_be_visible(timeout=LONG)
        address = page.url
    with serving(repository, data_dir, free_port):
        page.goto(address)
        expect(page.get_by_text("Log loss by number of tests")).to_be_visible(timeout=LONG)
        settled(page)
        expect(page.get_by_text("20 of 442 rows were asked")).to_be_visible()
        expect(page.get_by_text("On this cohort the model's order").first).to_be_visible()
        expect(page.locator(".js-plotly-plot")).to_have_count(7)
        with page.expect_download() as download:
            press(page, "Figures as JSON")
        figures = json.loads(Path(download.value.path()).read_text())
        assert figures["asked"] == 20 and len(figures["curves"][0]["loss"]) == 3
        page.reload()
        expect(page.get_by_text("Log loss by number of tests")).to_be_visible()
        assert page.get_by_text("Traceback").count() == 0
        assert findings(page, "evidence") == []

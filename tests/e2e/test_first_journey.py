"""A newcomer's first two minutes, in a real browser against the real server, model and store."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import PATIENCE, begin_step_through, events, press, serving, settled

pytestmark = pytest.mark.browser


def test_from_a_bundled_cohort_to_a_step_through_that_survives_reload_and_restart(
    page: Page, repository: Path, tmp_path: Path, free_port: int
):
    with serving(repository, tmp_path, free_port) as served:
        begin_step_through(page, served.address)
        expect(page.get_by_text("research use only", exact=False).first).to_be_visible()
        expect(page.get_by_text(re.compile(r"of 100 patients like this")).first).to_be_visible(timeout=PATIENCE)
        press(page, "Not available")
        events(page, 2)
        press(page, "Undo")
        events(page, 3)
        with page.expect_response(re.compile("no_answer.js")):  # what a dead server is told with is asked of the server
            page.reload()
        events(page, 3)
        settled(page)
        address_of_the_step_through = page.url
    said = page.get_by_role("dialog", name="L2M does not answer")
    expect(said).to_contain_text("What was recorded is kept.")
    expect(said).not_to_contain_text("Streamlit")
    with serving(repository, tmp_path, free_port):
        expect(said).to_have_count(0)
        page.goto(address_of_the_step_through)
        events(page, 3)
        assert page.get_by_text("Traceback").count() == 0

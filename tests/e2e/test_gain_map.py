"""The heat map of gains in a real browser: a click turns to a test, from the keyboard the select box does."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser import begin_step_through, events, press, serving, settled

pytestmark = pytest.mark.browser


def cell(page: Page, name: str, step: int) -> Locator:
    row = page.locator(".st-key-step-gains .row").filter(has=page.get_by_text(name, exact=True))
    return row.locator("i").nth(step)


def test_a_click_on_any_step_of_a_test_turns_to_it_and_is_no_event(
    page: Page, repository: Path, tmp_path: Path
) -> None:
    refused: list[str] = []
    page.on(
        "console", lambda message: refused.append(message.text) if "Content Security Policy" in message.text else None
    )
    with serving(repository, tmp_path) as served:
        begin_step_through(page, served.address)
        for step, name in enumerate(("creatinine", "D-dimer")):
            cell(page, name, 0).click()
            expect(page.get_by_role("spinbutton", name=name)).to_be_visible()
            settled(page)
            events(page, step + 1)
            press(page, "Not available")
            events(page, step + 2)
            settled(page)
            expect(cell(page, name, step + 1)).to_have_text("✕")
            expect(cell(page, name, step + 1)).to_have_attribute("title", f"{name}, step {step + 1}: unavailable")
        assert not refused
        # A number below the map is no cell.
        page.locator(".st-key-step-gains .bar").click()
        settled(page)
        events(page, 3)
        # The ranking is clicked in the same way, and says what is being looked at.
        row = page.locator(".l2m-ranking tr").filter(has=page.get_by_text("heart rate", exact=True))
        row.get_by_role("cell").first.click()
        expect(page.get_by_role("spinbutton", name="heart rate")).to_be_visible()
        expect(row).to_have_attribute("aria-current", "true")
        settled(page)
        events(page, 3)

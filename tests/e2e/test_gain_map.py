"""The heat map of gains in a real browser: a click turns to a test, from the keyboard the select box does."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from app.examples import EXAMPLES
from tests.e2e.browser import Served, begin_step_through, events, press, settled

pytestmark = pytest.mark.browser


def numbers_in_the_map(page: Page) -> list[str]:
    """Tests whose results are numbers, of the dozen that the map shows; which those are is the model's choice."""
    shown = page.locator(".st-key-step-gains .row").all_inner_texts()
    numbers = [f.name for f in EXAMPLES[0].make().features if f.kind == "number"]
    return [name for name in numbers if any(text.startswith(name) for text in shown)]


def cell(page: Page, name: str, step: int) -> Locator:
    row = page.locator(".st-key-step-gains .row").filter(has=page.get_by_text(name, exact=True))
    return row.locator("i").nth(step)


def test_a_click_on_any_step_of_a_test_turns_to_it_and_is_no_event(page: Page, served: Served) -> None:
    refused: list[str] = []
    page.on(
        "console", lambda message: refused.append(message.text) if "Content Security Policy" in message.text else None
    )
    begin_step_through(page, served.address)
    expect(page.locator(".st-key-step-gains .row").first).to_be_visible()
    for step, name in enumerate(numbers_in_the_map(page)[-2:]):
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

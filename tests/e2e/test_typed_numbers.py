"""What a browser would leave out of a number that is typed or pasted: no other number is recorded in its place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.axe import findings
from tests.e2e.browser import Served, begin_step_through, events, new_page, settled

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def stepping(browser: Browser, served: Served) -> Iterator[Page]:
    """A page with a patient of whom nothing was measured yet."""
    page = new_page(browser)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.address)
    begin_step_through(page, served.address)
    yield page
    page.close()


@pytest.mark.parametrize(
    ("entry", "way"), [("4,5", "typed"), ("<5", "typed"), ("120/80", "pasted"), ("1 100", "pasted")]
)
def test_nothing_of_it_is_recorded_and_the_field_says_so(stepping: Page, entry: str, way: str) -> None:
    page = stepping
    field = page.locator("[class*=st-key-value-] input[type=number]").first
    field.click()
    if way == "typed":
        page.keyboard.type(entry)
    else:
        page.evaluate("text => navigator.clipboard.writeText(text)", entry)
        page.keyboard.press("Control+V")
    said = page.get_by_role("alert").filter(has_text="Not taken")
    expect(said).to_contain_text("digits and a point")
    expect(field).to_have_value("")
    assert findings(page, entry) == []
    page.keyboard.press("Enter")
    settled(page)
    events(page, 1)
    field.click()
    expect(said).to_have_count(0)
    page.keyboard.press("Tab")
    settled(page)


def test_backspace_begins_it_anew(stepping: Page) -> None:
    field = stepping.locator("[class*=st-key-value-] input[type=number]").first
    field.click()
    stepping.keyboard.type("4,5")
    stepping.keyboard.press("Backspace")
    expect(stepping.get_by_text("Not taken")).to_have_count(0)
    stepping.keyboard.type(" -1.25e1")
    expect(field).to_have_value("-1.25e1")
    expect(stepping.get_by_text("Not taken")).to_have_count(0)


def test_a_script_that_could_not_be_fetched_leaves_the_page_as_it_was(stepping: Page) -> None:
    """As while the server is started anew: Streamlit says so in a box, which would lie over the page."""
    stepping.route("**/bidi-components/**", lambda route: route.abort())
    stepping.reload()
    failed = stepping.get_by_text("Failed to load script")
    expect(failed.first).to_be_attached()
    settled(stepping)
    assert not any(box.is_visible() for box in failed.all())

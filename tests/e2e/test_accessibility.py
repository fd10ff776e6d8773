"""Every page by axe-core, light and dark, on a desk and on a tablet: nothing serious; and one page without a mouse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.axe import findings
from tests.e2e.browser import (
    PATIENCE,
    Served,
    begin_step_through,
    events,
    new_page,
    page_names,
    press,
    settled,
)

pytestmark = pytest.mark.browser

LOOKS: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 1280), ("dark", 1280), ("light", 800))


def visit_everything(page: Page, address: str) -> Iterator[str]:
    """Goes through all that a person sees, naming where it is."""
    page.goto(address)
    expect(page.get_by_role("button", name="Open").first).to_be_visible()
    yield "first visit"
    begin_step_through(page, address)
    yield "step-through"
    press(page, "Not available")
    events(page, 2)
    page.get_by_text("Log (3 events)").click()
    yield "step-through with its log open"
    press(page, "Rules")
    yield "rules of a step-through"
    page.keyboard.press("Escape")
    press(page, "New")
    yield "new step-through"
    for name in page_names():
        if name == "step_through":
            continue
        page.goto(address if name == "cohort" else f"{address}/{name}")  # the first page has no name of its own
        settled(page)
        yield f"page {name}"
        for tab in page.get_by_role("tab").all()[1:]:
            tab.click()
            settled(page)
            yield f"page {name}, tab {tab.inner_text()}"


def test_no_page_has_a_serious_finding(browser: Browser, served: Served) -> None:
    page = new_page(browser, *LOOKS[0])
    found, seen = [], []
    for where in visit_everything(page, served.address):
        seen.append(where)
        for scheme, width in (*LOOKS[1:], LOOKS[0]):  # it goes on as it came
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(700)  # charts follow a little later
            here = findings(page, f"{where}, {scheme}, {width} pixels")
            print(where, *here, sep="\n")
            found += here
    page.close()
    assert {"step-through", "page about"} <= set(seen)
    assert found == [], "\n".join(found)


def tab_to(page: Page, words: str, backwards: bool = False, most: int = 120) -> None:
    """Press Tab until the element in focus says the words, as a person without a mouse would."""
    for _ in range(most):
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        tag, text = page.evaluate("""() => { const e = document.activeElement;
            return [e.tagName, (e.getAttribute('aria-label') || '') + ' ' + e.innerText]; }""")
        if tag in ("A", "BUTTON", "SUMMARY", "INPUT") and words in text:
            return
    pytest.fail(f"'{words}' cannot be reached by the Tab key.")


def focus_is_visible(page: Page) -> bool:
    """Whether the element in focus, or what surrounds it closely, is drawn differently from when it is not."""
    return page.evaluate("""() => {
        const chain = [document.activeElement, document.activeElement.parentElement];
        return chain.some(e => { const s = getComputedStyle(e);
            return (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== 'none'; });
    }""")


def test_a_step_through_needs_no_mouse(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    page.goto(served.address)
    expect(page.get_by_role("button", name="Open").first).to_be_visible()
    settled(page)
    tab_to(page, "Open")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Start a step-through")).to_be_visible()
    settled(page)
    tab_to(page, "Start a step-through")
    assert focus_is_visible(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Begin")).to_be_visible()
    settled(page)
    tab_to(page, "Fill in an example")
    page.keyboard.press("Enter")
    settled(page)
    tab_to(page, "Begin")
    page.keyboard.press("Enter")
    events(page, 1)
    settled(page)
    for count, words in ((2, "Not available"), (3, "Undo"), (4, "Stop"), (5, "Reopen")):
        tab_to(page, words)
        assert focus_is_visible(page), f"nobody sees that '{words}' is in focus"
        page.keyboard.press("Enter")
        events(page, count)
        settled(page)
    expect(page.get_by_text("Stopping is advised").or_(page.get_by_role("button", name="Record"))).not_to_have_count(
        0, timeout=PATIENCE
    )
    page.close()


def test_the_tab_key_goes_from_a_button_into_what_it_opens_and_back(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    begin_step_through(page, served.address)
    tab_to(page, "Export")
    page.keyboard.press("Enter")
    opened = page.locator("[data-testid=stPopoverBody]")
    expect(opened.get_by_role("button", name="Report as PDF")).to_be_visible()
    settled(page)
    page.keyboard.press("Tab")
    expect(opened.get_by_role("button").first).to_be_focused()
    assert focus_is_visible(page)
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("button", name="Export")).to_be_focused()
    opened.get_by_role("button", name="Trace as JSON").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="New")).to_be_focused()
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    page.close()


def test_the_tab_key_passes_by_the_closed_sidebar_of_a_phone(browser: Browser, served: Served) -> None:
    page = new_page(browser, width=390, height=844)
    page.goto(served.address)
    settled(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Expand sidebar")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Traces")).to_be_in_viewport()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_that_the_tab_key_is_at_has_a_ring(
    browser: Browser, served: Served, scheme: Literal["light", "dark"]
) -> None:
    page = new_page(browser, scheme)
    page.goto(served.address)
    settled(page)
    for name in ("Cohort", "Traces"):  # the page that is open, and another
        tab_to(page, name)
        assert focus_is_visible(page), f"nobody sees that '{name}' is in focus"
    page.close()

"""Every page on a tablet, a small and a large screen: nothing lies outside the page, and no text is cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.e2e.browser import Served, begin_step_through, events, page_names, press, settled, turn_to

pytestmark = pytest.mark.browser

WIDTHS = (1440, 1280, 820)
HEIGHT = 1000
# Texts whose end a person cannot see: an ancestor hides what lies beyond it, and offers no way to scroll there. Charts
# shorten their own names and have a table of numbers.
CUT = """() => {
    const cut = [], main = document.querySelector('[data-testid=stMain]');
    const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT), range = document.createRange();
    while (texts.nextNode()) {
        const text = texts.currentNode, parent = text.parentElement;
        if (!text.textContent.trim() || parent.closest('svg, canvas, style') || !parent.checkVisibility()) continue;
        range.selectNodeContents(text);
        const drawn = range.getBoundingClientRect();
        for (let around = parent; around !== main; around = around.parentElement) {
            const overflow = getComputedStyle(around).overflowX, box = around.getBoundingClientRect();
            if (overflow === 'auto' || overflow === 'scroll' || box.width <= 2) break;
            if (overflow !== 'visible' && (drawn.right > box.right + 1.5 || drawn.left < box.left - 1.5)) {
                cut.push(text.textContent.trim());
                break;
            }
        }
    }
    return cut;
}"""
BEYOND = """() => [document.documentElement, ...document.querySelectorAll('[data-testid=stMain]')]
    .map(element => element.scrollWidth - element.clientWidth)"""
SAMPLE = """() => document.querySelector('[data-testid=stMain]').insertAdjacentHTML('beforeend',
    '<p style="width: 40px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis">a text that is cut</p>')"""
BACKGROUND = "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"


def look(page: Page, name: str, folder: Path) -> list[str]:
    """Pictures at every width, and what is wrong with them."""
    wrong = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.wait_for_timeout(700)  # charts follow the width a little later
        page.screenshot(path=folder / f"{name}-{width}.png")
        wrong += [f"{name} at {width}: '{text}' is cut" for text in page.evaluate(CUT)]
        wrong += [f"{name} at {width}: {beyond} pixels too wide" for beyond in page.evaluate(BEYOND) if beyond > 0]
    return wrong


def look_in_the_dark(page: Page, name: str, folder: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": HEIGHT})
    light = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(700)
    page.screenshot(path=folder / f"{name}-1280-dark.png")
    assert page.evaluate(BACKGROUND) != light, f"{name} stays light"
    page.emulate_media(color_scheme="light")


def test_on_no_screen_is_a_page_too_wide_or_a_text_cut(page: Page, served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    wrong = []
    begin_step_through(page, served.address)
    press(page, "Not available")
    events(page, 2)
    settled(page)
    turn_to(page, "CRP")  # one of a panel: its form has the most to show
    page.mouse.move(0, 0)
    address = page.url
    wrong += look(page, "step_through", folder)
    look_in_the_dark(page, "step_through", folder)
    page.set_viewport_size({"width": 820, "height": HEIGHT})
    page.wait_for_timeout(700)
    known, answer, next_test = (
        page.locator(f".st-key-step-{part}").bounding_box() for part in ("known", "now", "next")
    )
    assert known and answer and next_test
    assert answer["y"] == next_test["y"] < known["y"] and answer["width"] > 350 < next_test["width"]
    for name in sorted(set(page_names()) - {"step_through"}):
        page.goto(address.replace("/step_through", "" if name == "cohort" else f"/{name}"))
        settled(page)
        wrong += look(page, name, folder)
        look_in_the_dark(page, name, folder)
    page.evaluate(SAMPLE)
    assert page.evaluate(CUT) == ["a text that is cut"], "what is cut is not noticed"
    assert len(list(folder.glob("*.png"))) == len(page_names()) * (len(WIDTHS) + 1)
    assert wrong == [], "\n".join(wrong)

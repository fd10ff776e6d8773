"""The user guide's pictures: drawn by the real app, and written to docs/pictures with --write-pictures."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page

from tests.e2e.browser import PATIENCE, chromium_running, events, new_page, open_first_cohort, press, serving, settled

pytestmark = pytest.mark.browser

FOLDER = Path("docs/pictures")
WIDTH, LARGEST = 1280, 150_000  # pixels, bytes
NAMES = ("first-visit", "cohort", "start", "step-through")


def draw(page: Page, folder: Path, name: str) -> None:
    """A picture of what is on the screen, with few enough colours to be small."""
    settled(page)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)


def enter_a_result(page: Page) -> None:
    """Of whatever test is suggested: that is the model's choice."""
    entry = page.get_by_placeholder("not known").last
    if entry.get_attribute("role") == "combobox":
        entry.click()
        page.get_by_role("option").nth(1).click()
    else:
        entry.fill("38")


def test_the_pictures_can_be_drawn_and_are_small(
    repository: Path, chromium: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = repository / FOLDER if request.config.getoption("--write-pictures") else tmp_path / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    with serving(repository, tmp_path / "data") as served, chromium_running(chromium) as browser:
        page = new_page(browser, width=WIDTH, height=860)
        page.goto(served.address)
        page.get_by_role("button", name="Open").first.wait_for()
        draw(page, folder, "first-visit")
        open_first_cohort(page, served.address)
        draw(page, folder, "cohort")
        press(page, "Start a step-through")
        press(page, "Fill in an example")
        draw(page, folder, "start")
        press(page, "Begin")
        events(page, 1)
        settled(page)
        for count in (2, 3):
            enter_a_result(page)
            press(page, "Record")
            events(page, count)
            settled(page)
        page.get_by_text("being computed").wait_for(state="hidden", timeout=5 * PATIENCE)
        page.wait_for_timeout(2000)
        draw(page, folder, "step-through")
    for name in NAMES:
        file = folder / f"{name}.png"
        assert Image.open(file).width == WIDTH
        assert 10_000 < file.stat().st_size <= LARGEST, f"{name}: {file.stat().st_size} bytes"

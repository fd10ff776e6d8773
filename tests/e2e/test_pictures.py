"""The user guide's pictures: drawn by the real app, and written to docs/pictures with --write-pictures."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from app.examples import EXAMPLES
from l2m_core.cohort import Cohort
from tests.e2e.browser import (
    PATIENCE,
    chromium_running,
    events,
    follow,
    new_page,
    open_example,
    press,
    serving,
    set_number,
    settled,
)
from tests.e2e.test_own_cohort import choose_file, ward_csv

pytestmark = pytest.mark.browser

FOLDER = Path("docs/pictures")
WIDTH, LARGEST = 1280, 150_000  # pixels, bytes
NAMES = ("first-visit", "columns", "cohort", "start", "step-through", "evidence", "trace", "experiments")


def draw(page: Page, folder: Path, name: str) -> None:
    """A picture of what is on the screen, with few enough colours to be small."""
    settled(page)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)


def enter_a_result(page: Page, cohort: Cohort) -> None:
    """Of whatever test is suggested, a panel or one alone: that is the model's choice. A value that the cohort holds."""
    for entry in page.locator("[class*='st-key-value-']").all():
        found = re.search(r"st-key-value-[0-9a-f-]+-(\d+)\b", entry.get_attribute("class") or "")
        assert found is not None
        number = int(found[1])
        if cohort.features[number].kind == "number":
            value = np.nanquantile(cohort.x[:, number], 0.75, method="nearest")
            entry.locator("input").fill(cohort.decode(cohort.names[number], value))
        else:
            entry.locator("input").click()
            page.get_by_role("option").nth(1).click()


def gather_evidence(page: Page) -> None:
    """Of few patients, so that it does not take long; the page says how many."""
    page.get_by_role("link", name="Evidence").click()
    press(page, "Settings")
    for name, value in (("Folds", 3), ("Tests, at most", 6), ("Rows to predict, at most", 60)):
        set_number(page, name, value)
    page.keyboard.press("Escape")
    press(page, "Gather evidence")
    expect(page.get_by_text("Log loss by number of tests")).to_be_visible(timeout=10 * PATIENCE)


@pytest.mark.slow  # the journeys lead through the same pages
def test_the_pictures_can_be_drawn_and_are_small(
    repository: Path, chromium: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = repository / FOLDER if request.config.getoption("--write-pictures") else tmp_path / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    cohort = EXAMPLES[0].make()
    with serving(repository, tmp_path / "data") as served, chromium_running(chromium) as browser:
        page = new_page(browser, width=WIDTH, height=860)
        page.goto(served.address)
        page.get_by_role("button", name="Open").first.wait_for()
        draw(page, folder, "first-visit")
        choose_file(page, ward_csv(tmp_path))
        draw(page, folder, "columns")
        press(page, "Discard")
        open_example(page, served.address)
        draw(page, folder, "cohort")
        follow(page, "Start a step-through")
        press(page, "Fill in an example")
        draw(page, folder, "start")
        press(page, "Begin")
        events(page, 1)
        settled(page)
        for count in (2, 3):
            enter_a_result(page, cohort)
            press(page, "Record")
            events(page, count)
            settled(page)
        page.get_by_text("being computed").wait_for(state="hidden", timeout=5 * PATIENCE)
        page.wait_for_timeout(2000)
        draw(page, folder, "step-through")
        gather_evidence(page)
        draw(page, folder, "evidence")
        page.get_by_role("link", name="Traces").click()
        page.locator("[class*='st-key-open-'] button").first.click()
        expect(page.get_by_role("button", name="All traces")).to_be_visible()
        draw(page, folder, "trace")
        page.get_by_role("link", name="Experiments").click()
        expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()
        draw(page, folder, "experiments")
    for name in NAMES:
        file = folder / f"{name}.png"
        assert Image.open(file).width == WIDTH
        assert 10_000 < file.stat().st_size <= LARGEST, f"{name}: {file.stat().st_size} bytes"

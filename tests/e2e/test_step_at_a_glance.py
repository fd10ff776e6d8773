"""The step-through page at a glance: on a phone what one needs is on the first screen, and nothing moves while one reads."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest
import yaml
from playwright.sync_api import Browser, Page, expect

from app.examples import EXAMPLES
from app.host.identity import COOKIE
from l2m_core.cohort import Cohort
from tests.e2e.axe import findings
from tests.e2e.browser import PATIENCE, Served, begin_step_through, events, new_page, press, serving, settled
from tests.e2e.test_layout import BEYOND, CUT
from tests.load.test_step_in_browser import visitor_with

pytestmark = pytest.mark.browser

PHONE = (390, 844)
LARGER = ((820, 1180), (1440, 900))
Scheme = Literal["light", "dark"]
# Colours depend on the scheme and not on the width, so each width need not be seen in both.
SCREENS: tuple[tuple[tuple[int, int], tuple[Scheme, ...]], ...] = (
    (PHONE, ("light", "dark")),
    (LARGER[0], ("light",)),
    (LARGER[1], ("dark",)),
)
# Six classes and many columns; a table with holes. Others of two and no classes, of 7 to 24 columns, are looked at among the
# long tests.
SHAPES = ("dermatology", "eicu_demo_apache")
FURTHER_SHAPES = ("heart_cleveland", "diabetes_progression", "ckd", "whas500")
NEEDED = (".l2m-verdict", ".st-key-step-now", "[class*=st-key-step-test-]", "[class*=st-key-value-]")
# But for icons, whose names are letters to a font that lacks them.
WIDE_LETTERS = """:not([data-testid=stIconMaterial]) {
    font-family: monospace !important; letter-spacing: 0.12em !important
}"""
READ = (*NEEDED, ".st-key-record-submit", ".st-key-step-preview", ".st-key-step-history", ".st-key-step-ranking")


def begin_on(page: Page, address: str, cookie: str, cohort: str) -> None:
    page.context.add_cookies([{"name": COOKIE, "value": cookie, "url": address}])
    page.goto(f"{address}/step_through?cohort={cohort}")
    expect(page.get_by_role("button", name="Begin")).to_be_visible()
    settled(page)
    press(page, "Begin")
    events(page, 1)
    settled(page)


def places(page: Page, wanted: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """Of each, its top and bottom in pixels of the page."""
    found = {}
    for where in wanted:
        box = page.locator(where).first.bounding_box()
        assert box is not None, f"{where} is not shown"
        found[where] = (round(box["y"]), round(box["y"] + box["height"]))
    return found


def wrong_on_screens(browser: Browser, served: Served, cohort: Cohort, pictures: Path) -> list[str]:
    """What is wrong with a step on a phone, a tablet and a desk, light and dark."""
    cookie, stored = visitor_with(cohort, served.data_dir)
    page = new_page(browser, width=PHONE[0], height=PHONE[1])
    begin_on(page, served.address, cookie, stored)
    wrong = [
        f"{cohort.name}: {where} ends at {bottom} on a phone"
        for where, (_, bottom) in places(page, NEEDED).items()
        if bottom > PHONE[1]
    ]
    for (width, height), schemes in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(700)
            page.screenshot(path=pictures / f"{cohort.name}-{width}-{scheme}.png")
            wrong += findings(page, f"{cohort.name}, {width} pixels, {scheme}")
        wrong += [f"{cohort.name} at {width}: '{text}' is cut" for text in page.evaluate(CUT)]
        wrong += [f"{cohort.name} at {width}: {over} pixels too wide" for over in page.evaluate(BEYOND) if over > 0]
    page.close()
    return wrong


def test_the_bundled_cohorts_are_read_at_a_glance_on_every_screen(
    browser: Browser, served: Served, tmp_path: Path
) -> None:
    wrong = [each for example in EXAMPLES for each in wrong_on_screens(browser, served, example.make(), tmp_path)]
    assert wrong == [], "\n".join(wrong)


def test_on_a_phone_a_step_through_begins_at_its_top(page: Page, served: Served) -> None:
    """Its first step comes in place of a long form, whose button to begin lies far down."""
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    begin_step_through(page, served.address)
    expect(page.locator(".l2m-verdict")).to_be_in_viewport()
    page.get_by_role("button", name="Stop").scroll_into_view_if_needed()
    page.locator("[data-testid=stMain]").evaluate("main => main.scrollTo(0, 400)")
    page.get_by_role("button", name="Pending").click()
    events(page, 2)
    settled(page)
    # A step of the same patient leaves the page where its reader has it.
    assert page.locator("[data-testid=stMain]").evaluate("main => main.scrollTop") > 0


@pytest.mark.shared_data
@pytest.mark.parametrize("name", [*SHAPES, *(pytest.param(name, marks=pytest.mark.slow) for name in FURTHER_SHAPES)])
def test_real_cohorts_of_many_shapes_are_read_at_a_glance_on_every_screen(
    browser: Browser, served: Served, tmp_path: Path, shared_data: Path, name: str
) -> None:
    described = yaml.safe_load((shared_data / "manifest.yaml").read_text())["datasets"]
    entry = next(entry for entry in described if entry["name"] == name)
    cohort = Cohort.from_csv(shared_data / entry["file"], entry["outcome"], entry["baseline_columns"], name=name)
    wrong = wrong_on_screens(browser, served, cohort, tmp_path)
    assert wrong == [], "\n".join(wrong)


def cohort_with_long_names() -> Cohort:
    """Names of one word to a browser, since nothing in them is a blank; one has not even an underscore."""
    names = ["vacuolisation_and_damage_of_basal_layer", "disappearance_of_the_granular_layer", "hyper" * 8, "age"]
    draw = np.random.default_rng(3)
    frame = pd.DataFrame(draw.normal(size=(80, len(names))).round(2), columns=names)
    return Cohort.from_frame(frame.assign(ill=np.where(frame[names[0]] > 0, "yes", "no")), outcome="ill", name="long")


def test_long_names_are_read_whole_however_wide_the_letters_are(browser: Browser, served: Served) -> None:
    wrong = []
    cookie, cohort = visitor_with(cohort_with_long_names(), served.data_dir)
    page = new_page(browser, width=PHONE[0], height=PHONE[1])
    begin_on(page, served.address, cookie, cohort)
    page.add_style_tag(content=WIDE_LETTERS)
    for width, height in (PHONE, *LARGER):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(700)
        wrong += [f"at {width}: '{text}' is cut" for text in page.evaluate(CUT)]
    page.close()
    assert wrong == [], "\n".join(wrong)


def test_when_the_band_arrives_nothing_moves_and_the_test_looked_at_stays(
    browser: Browser, repository: Path, tmp_path: Path
) -> None:
    page = new_page(browser, width=1280, height=1800)
    with serving(repository, tmp_path) as served:
        cookie, cohort = visitor_with(EXAMPLES[0].make().rows(np.arange(300)), tmp_path)
        begin_on(page, served.address, cookie, cohort)
        press(page, "Not available")
        events(page, 2)
        expect(page.get_by_text("being computed")).to_be_visible()
        before = places(page, READ)
        chosen = page.locator("[class*=st-key-step-test-] input").input_value()
        expect(page.get_by_text("had the cohort held other patients")).to_be_visible(timeout=5 * PATIENCE)
        settled(page)
        assert places(page, READ) == before
        assert page.locator("[class*=st-key-step-test-] input").input_value() == chosen
    page.close()

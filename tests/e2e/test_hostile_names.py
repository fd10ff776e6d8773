"""Names and values of an uploaded table, in a real browser: shown as written, and nothing is fetched because of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import chromium_running, events, follow, new_page, press, serving, settled

pytestmark = pytest.mark.browser

IMAGE = "![x](http://canary.invalid/a.png)"
TAG = "<img src=http://canary.invalid/b onerror=fetch('http://canary.invalid/c')>"
LINK = "[go](http://canary.invalid/d) $x^2$ :red[e]"


def table() -> str:
    rows = [f'"{IMAGE}","{TAG}","{LINK}",died']
    rows += [f"{40 + i % 31},{1 + i % 7}.5,{['<b>no</b>', 'yes'][i % 2]},{i % 2}" for i in range(40)]
    return "\n".join(rows) + "\n"


def test_names_never_make_the_browser_fetch_anything(repository: Path, chromium: Path, tmp_path: Path) -> None:
    file = tmp_path / "www.canary.invalid.csv"
    file.write_text(table())
    with serving(repository, tmp_path / "data") as served, chromium_running(chromium) as browser:
        page = new_page(browser)
        outside: list[str] = []
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((served.address, "data:", "blob:")) else outside.append(request.url)
            ),
        )
        page.goto(served.address)
        page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(str(file))
        press(page, "Save cohort")
        expect(page.get_by_role("link", name="Start a step-through")).to_be_visible()
        settled(page)
        follow(page, "Start a step-through")
        press(page, "Begin")
        events(page, 1)
        settled(page)
        shown = page.locator("body").inner_text().replace("\u2060", "")
        assert page.locator("img[src*=canary], a[href*=canary]").count() == 0
        assert re.search(r"canary\.invalid", shown), "the names are not shown at all"
        assert outside == []
        assert not [line for line in served.lines if "canary" in line]

"""A chart's picture and numbers, taken away with one press each, in a real browser."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image
from playwright.sync_api import Page

from app.ui.charts.pictures import WIDTH
from app.ui.charts.png import ZOOM
from tests.e2e.browser import Served, events, follow, open_example, press, settled

pytestmark = pytest.mark.browser


def taken(page: Page, chart: str, kind: str) -> bytes:
    """What one press on the chart's button saves."""
    with page.expect_download() as download:
        page.locator(f".st-key-{chart}-{kind} button").click()
    assert download.value.suggested_filename.endswith(f".{kind.lower()}")
    return Path(download.value.path()).read_bytes()


def are_of_one_chart(page: Page, chart: str) -> None:
    """Its three files: a picture of pixels as large as the drawn one, and its numbers in rows."""
    pixels = taken(page, chart, "PNG")
    assert pixels.startswith(b"\x89PNG\r\n\x1a\n")
    image = Image.open(io.BytesIO(pixels))
    drawn = ElementTree.fromstring(taken(page, chart, "SVG"))
    assert image.size == (ZOOM * int(drawn.get("width", 0)), ZOOM * int(drawn.get("height", 0)))
    assert image.width == ZOOM * WIDTH and len(pixels) > 5_000
    rows = list(csv.reader(io.StringIO(taken(page, chart, "CSV").decode("utf-8-sig"))))
    assert len(rows) > 1 and len({len(row) for row in rows}) == 1


@pytest.mark.parametrize("width", [1280, 390])
def test_one_press_saves_a_chart_as_svg_as_png_and_its_numbers_as_csv(page: Page, served: Served, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    open_example(page, served.address)
    are_of_one_chart(page, "recorded-map")  # drawn by Plotly
    assert page.locator(".modebar").count() == 0, "the buttons below are the only ones"
    follow(page, "Start a step-through")
    for name in ("Fill in an example", "Begin"):
        press(page, name)
    events(page, 1)
    settled(page)
    for chart in ("step-history", "step-gains", "step-preview"):  # HTML
        are_of_one_chart(page, chart)

"""From a table to a trace and back: uploaded, stepped through, exported, and replayed by somebody else's browser."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pypdf
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from l2m_core.schema import Feature, Schema
from tests.app.conftest import small_cohort, small_frame
from tests.e2e.browser import PATIENCE, events, follow, new_page, press, serving, settled, turn_to

pytestmark = pytest.mark.browser

LABEL = "Canary label µ"
REASON = "canary reason"
VALUE = "2.7183"  # of lactate; unlike any other number on the way
WORDS = (LABEL, REASON, VALUE)
# Beside the ward's own: with lactate and the panel, ten tests that are measured.
ASSAYS = ("albumin", "bilirubin", "chloride", "ferritin", "glucose", "haemoglobin", "magnesium", "urea")
KINDS = ["start", "observe", "observe", "undo", "unavailable", "observe", *["observe"] * len(ASSAYS), "stop"]


def wide_frame() -> pd.DataFrame:
    draw = np.random.default_rng(4)
    frame = small_frame()
    assays = pd.DataFrame({name: draw.normal(50, 10, len(frame)).round() for name in ASSAYS})
    return pd.concat([frame, assays], axis=1)


def wide_schema() -> Schema:
    schema = small_cohort().schema
    return Schema((*schema.features, *(Feature(name, cost=3) for name in ASSAYS)), schema.outcome)


def upload_the_cohort(page: Page, address: str, folder: Path) -> None:
    """A CSV with holes, and what is known of its columns as YAML."""
    table, schema = folder / "ward.csv", folder / "ward.yaml"
    wide_frame().to_csv(table, index=False)
    schema.write_text(wide_schema().to_yaml())
    page.goto(address)
    expect(page.get_by_role("button", name="Open").first).to_be_visible()
    page.locator(".st-key-cohort-upload input[type=file]").set_input_files(table)
    expect(page.get_by_text("New cohort from")).to_be_visible()
    page.locator(".st-key-cohort-draft-schema input[type=file]").set_input_files(schema)
    settled(page)
    press(page, "Save cohort")
    expect(page.get_by_role("link", name="Start a step-through")).to_be_visible()
    settled(page)


def believed(page: Page) -> str:
    return page.get_by_test_id("stMetricValue").first.inner_text()


def step_through(page: Page) -> None:
    """Ten tests: one by override, one previewed and undone, one not to be had, a panel, and one press that was doubled."""
    follow(page, "Start a step-through")
    press(page, "Fill in an example")
    settled(page)
    page.get_by_role("textbox", name="Label").fill(LABEL)
    press(page, "Begin")
    events(page, 1)
    settled(page)
    turn_to(page, "lactate")
    field(page, "lactate").fill(VALUE)
    reason = page.get_by_role("textbox", name="Why not")
    if reason.count():
        reason.fill(REASON)
    field(page, "lactate").press("Enter")
    events(page, 2)
    settled(page)
    turn_to(page, "scan")
    previewed = preview_of(page, "dense")
    field(page, "scan").click()
    page.get_by_role("option", name="dense").click()
    press(page, "Record")
    events(page, 3)
    settled(page)
    assert believed(page) == previewed, "entering a result gave another answer than its preview"
    press(page, "Undo")
    events(page, 4)
    settled(page)
    turn_to(page, "scan")
    press(page, "Not available")
    events(page, 5)
    settled(page)
    turn_to(page, "sodium")
    field(page, "sodium").fill("131")
    field(page, "potassium").fill("4.4")
    press(page, "Record the panel")
    events(page, 6)
    settled(page)
    for number, name in enumerate(ASSAYS, 7):
        turn_to(page, name)
        field(page, name).fill("50")
        record = page.get_by_role("button", name="Record").last
        record.dblclick() if name == ASSAYS[0] else record.click()
        events(page, number)
        settled(page)
    expect(page.get_by_text("10 tests", exact=False).first).to_be_visible()
    press(page, "Stop")
    events(page, len(KINDS))
    settled(page)


def preview_of(page: Page, result: str) -> str:
    """The answer that the preview draws for a result."""
    expect(page.locator(".st-key-step-preview .value")).to_have_count(3)
    results, answers = (
        page.locator(f".st-key-step-preview {part}").all_inner_texts() for part in (".result", ".value")
    )
    # Beside a result stands how likely it is.
    return next(answer for shown, answer in zip(results, answers, strict=True) if shown.startswith(result))


def field(page: Page, test: str) -> Locator:
    """Where the result of a test is entered."""
    number = wide_schema().names.index(test)
    return page.locator(f"[class*='st-key-value-'][class*='-{number} '] input")


def export(page: Page, kind: str, folder: Path) -> Path:
    press(page, "Export")
    with page.expect_download(timeout=PATIENCE) as download:
        page.get_by_role("button", name=f"as {kind}").first.click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    page.keyboard.press("Escape")
    return path


def import_trace(page: Page, address: str, file: Path) -> None:
    page.goto(f"{address}/traces")
    press(page, "Import a trace")
    page.locator("[class*=st-key-traces-import] input[type=file]").set_input_files(file)


def replayed(page: Page, count: int) -> list[str]:
    """The answers that the page shows at each step, going back from the last one by the keyboard."""
    answers = []
    for number in range(count - 1, -1, -1):
        expect(page.get_by_role("heading", name=f"Step {number} of {count - 1}")).to_be_visible(timeout=PATIENCE)
        settled(page)
        answers.append(believed(page))
        if number:
            page.locator("body").press("p")
    return answers[::-1]


def go_back_and_forth(page: Page) -> None:
    """With the browser's own arrows, between a trace and the list that it was opened from."""
    page.go_back()
    expect(page.get_by_role("button", name=LABEL)).to_be_visible(timeout=PATIENCE)
    settled(page)
    page.go_forward()
    expect(page.get_by_role("button", name="All traces")).to_be_visible(timeout=PATIENCE)
    settled(page)


def share_the_cohort(page: Page, address: str) -> None:
    page.bring_to_front()  # the other browser's page was the last to be used
    page.goto(address)
    expect(page.get_by_role("tab", name="Manage")).to_be_visible()
    settled(page)
    page.get_by_role("tab", name="Manage").click()
    page.get_by_text("Share with everyone").click()
    settled(page)


def watch(page: Page, seen: list[str]) -> None:
    page.on("request", lambda request: seen.append(request.url))


def check_addresses(seen: list[str], address: str) -> None:
    """Nothing was fetched from elsewhere, and no address says anything of a patient."""
    for url in seen:
        parts = urlsplit(url)
        assert parts.scheme in ("data", "blob") or parts.netloc == urlsplit(address).netloc, url
        if parts.scheme in ("http", "ws"):
            assert not any(word in url for word in (*WORDS, "canary", "Canary")), url
            assert (
                set(parse_qs(parts.query)) <= {"step", "cohort", "trace", "title", "streamlitUrl"} or "_stcore" in url
            ), url


def posteriors(file: Path) -> list[dict[str, float]]:
    return [step["posterior"] for step in json.loads(file.read_text("utf-8"))["steps"]]


def two_browsers(browser: Browser, address: str, folder: Path) -> None:
    first, second = new_page(browser), new_page(browser)
    seen: list[str] = []
    watch(first, seen)
    watch(second, seen)
    upload_the_cohort(first, address, folder)
    step_through(first)
    files = {kind: export(first, kind, folder) for kind in ("JSON", "CSV", "PDF", "HTML")}
    check_files(files)

    first.get_by_role("link", name="Traces").click()
    press(first, LABEL)
    shown = replayed(first, len(KINDS))
    go_back_and_forth(first)

    import_trace(second, address, files["JSON"])
    expect(second.get_by_text("needs the cohort 'ward'")).to_be_visible(timeout=PATIENCE)
    share_the_cohort(first, address)
    import_trace(second, address, files["JSON"])
    expect(second.get_by_text("replays to the same posteriors").first).to_be_visible(timeout=PATIENCE)
    assert replayed(second, len(KINDS)) == shown
    again = export(second, "JSON", folder / "again")
    assert posteriors(again) == posteriors(files["JSON"])

    second.get_by_role("tab", name="Verify").click()
    press(second, "Verify now")
    expect(second.get_by_text("All checks passed")).to_be_visible(timeout=PATIENCE)
    second.reload()
    expect(second.get_by_role("heading", name=f"Step {len(KINDS) - 1} of {len(KINDS) - 1}")).to_be_visible(
        timeout=PATIENCE
    )
    settled(second)
    press(second, "Continue")
    events(second, len(KINDS))
    press(second, "Reopen")
    events(second, len(KINDS) + 1)
    check_addresses(seen, address)
    assert second.get_by_text("Traceback").count() == 0


def check_files(files: dict[str, Path]) -> None:
    rows = list(csv.DictReader(io.StringIO(files["CSV"].read_text("utf-8-sig"), newline="")))
    assert [row["event"] for row in rows] == KINDS
    stored = posteriors(files["JSON"])
    assert [float(row["posterior yes"]) for row in rows] == [posterior["yes"] for posterior in stored]
    assert rows[1]["values"] == VALUE
    printed = "\n".join(page.extract_text() for page in pypdf.PdfReader(files["PDF"]).pages)
    assert LABEL in printed and "Research use only" in printed and f"{stored[-1]['yes']:.0%}" in printed
    page = files["HTML"].read_text("utf-8")
    assert LABEL in page and "<script" not in page


def test_a_trace_leaves_one_browser_and_replays_in_another(
    browser: Browser, repository: Path, tmp_path: Path, free_port: int
) -> None:
    (tmp_path / "again").mkdir()
    with serving(repository, tmp_path / "data", free_port) as served:
        two_browsers(browser, served.address, tmp_path)
    log = "".join(served.lines)
    assert not any(word in log for word in (*WORDS, "canary", "Traceback")), log[-2000:]

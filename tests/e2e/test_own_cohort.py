"""A person's own file: to the first suggestion in few clicks, roles changed by one press, every screen looked at."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import openpyxl
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.axe import findings
from tests.e2e.browser import Served, events, new_page, press, settled
from tests.e2e.test_layout import BEYOND, CUT

pytestmark = pytest.mark.browser

MOST_CLICKS = 4
WIDTHS = (1440, 820, 390)
# Cohorts of different shapes: many holes, a continuous outcome, six classes, text levels, 490 columns, no baseline.
COHORTS = (
    "eicu_demo_apache",
    "diabetes_progression",
    "dermatology",
    "ckd",
    "metabric_pam50_wide",
    "breast_cancer_wisconsin",
)


def ward_csv(folder: Path) -> Path:
    file = folder / "ward.csv"
    ward().to_csv(file, index=False)
    return file


def ward_workbook(folder: Path) -> Path:
    """With dates that are dates, and a sheet that explains the columns."""
    file, frame = folder / "ward.xlsx", ward()
    with pd.ExcelWriter(file) as writer:
        pd.DataFrame({"column": frame.columns, "meaning": "as it says"}).to_excel(
            writer, sheet_name="Legend", index=False
        )
        frame.assign(**{"admission date": pd.to_datetime(frame["admission date"])}).to_excel(
            writer, sheet_name="Ward", index=False
        )
    return file


def ward(rows: int = 300) -> pd.DataFrame:
    """A cohort that a hospital could have: an identifier, a date, panels, holes, a leak by its name."""
    generator = np.random.default_rng(3)
    severity = generator.normal(size=rows)
    labs = generator.random((rows, 2)) < 0.7
    return pd.DataFrame(
        {
            "patient id": np.arange(5000, 5000 + rows),
            "admission date": [f"2023-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(rows)],
            "age": np.round(60 + 12 * generator.normal(size=rows)),
            "sex": generator.choice(["f", "m"], rows),
            "heart rate": np.round(85 + 12 * severity + 8 * generator.normal(size=rows)),
            "lactate": np.where(labs[:, 0], np.round(1.5 + np.exp(severity / 2), 1), np.nan),
            "sodium": np.where(labs[:, 1], np.round(139 + 4 * generator.normal(size=rows)), np.nan),
            "potassium": np.where(labs[:, 1], np.round(4.1 + 0.5 * generator.normal(size=rows), 1), np.nan),
            "length of stay": np.round(5 + 3 * np.abs(generator.normal(size=rows)), 1),
            "died": np.where(severity + generator.normal(size=rows) > 1, "yes", "no"),
        }
    )


def choose_file(page: Page, file: Path) -> None:
    """What the file dialog does."""
    page.locator("input[type=file]").first.set_input_files(file)
    expect(page.locator(".l2m-columns li").first).to_be_visible()


@pytest.mark.parametrize("write", [ward_csv, ward_workbook])
def test_an_own_file_gives_its_first_suggestion_in_four_clicks(
    browser: Browser, served: Served, tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    page = new_page(browser)
    page.goto(served.address)
    expect(page.get_by_role("button", name="Open").first).to_be_visible()
    page.evaluate(
        """() => { window.clicks = 0; document.addEventListener('click', () => { window.clicks += 1; }, true); }"""
    )
    choose_file(page, write(tmp_path))
    expect(
        page.get_by_text(re.compile(r"3 known at the start, 3 can be measured, 3 ignored; outcome died"))
    ).to_be_visible()
    for name in ("Save cohort", "Start a step-through", "Begin"):
        settled(page)  # as people wait for what a press brings
        press(page, name, "link" if name.startswith("Start") else "button")
    events(page, 1)
    expect(page.get_by_role("button", name="Record")).to_be_visible()
    assert 0 < page.evaluate("window.clicks") <= MOST_CLICKS
    page.close()


def role_of(page: Page, column: str) -> str:
    checked = page.get_by_role("radiogroup", name=f"Role of {column}").locator("input:checked")
    return str(checked.get_attribute("value"))


def test_roles_are_changed_by_a_click_a_key_and_several_at_once(
    browser: Browser, served: Served, tmp_path: Path
) -> None:
    page = new_page(browser)
    page.goto(served.address)
    choose_file(page, ward_csv(tmp_path))
    settled(page)
    assert role_of(page, "heart rate") == "baseline" and role_of(page, "length of stay") == "ignored"
    page.get_by_role("radiogroup", name="Role of heart rate").get_by_role("radio", name="To measure").click()
    page.get_by_role("radiogroup", name="Role of lactate").locator("input:checked").focus()
    page.keyboard.press("k")
    expect(page.get_by_role("radiogroup", name="Role of lactate").locator("input:focus")).to_have_value("baseline")
    page.get_by_role("searchbox", name="Search columns").fill("ium")  # sodium and potassium
    page.get_by_role("checkbox", name="Select all shown").check()
    page.locator(".l2m-columns .together").get_by_role("button", name="Ignore").click()
    page.get_by_role("searchbox", name="Search columns").fill("")
    expect(page.get_by_text(re.compile(r"3 known at the start, 1 can be measured, 5 ignored"))).to_be_visible()
    roles = {name: role_of(page, name) for name in ("heart rate", "lactate", "sodium", "potassium", "age")}
    assert roles == {
        "heart rate": "acquirable",
        "lactate": "baseline",
        "sodium": "ignored",
        "potassium": "ignored",
        "age": "baseline",
    }
    unit = page.get_by_role("textbox", name="Unit of heart rate")
    unit.fill("per min")
    page.get_by_role("combobox", name="Kind of lactate").select_option("category")
    settled(page)
    assert unit.input_value() == "per min"
    press(page, "Save cohort")
    expect(page.get_by_text("is stored as version 1").first).to_be_visible()
    page.get_by_role("tab", name="Schema").click()
    expect(page.locator(".l2m-columns li").first).to_be_visible()
    assert {name: role_of(page, name) for name in roles} == roles
    assert page.get_by_role("textbox", name="Unit of heart rate").input_value() == "per min"
    page.close()


def test_what_is_open_stays_open_when_a_message_comes_and_goes(
    browser: Browser, served: Served, tmp_path: Path
) -> None:
    page = new_page(browser)
    page.goto(served.address)
    choose_file(page, ward_csv(tmp_path))
    press(page, "Save cohort")
    expect(page.get_by_text("is stored as version 1").first).to_be_visible()
    settled(page)
    page.get_by_role("tab", name="Schema").click()
    page.get_by_text("Costs, turnaround, panels and ranges").click()
    grid = page.get_by_test_id("stDataFrame")
    expect(grid).to_be_visible()
    press(page, "Save as a new version")
    said = page.get_by_text("Nothing was changed.")
    expect(said).to_be_visible()
    settled(page)
    expect(grid).to_be_visible()
    page.get_by_role("textbox", name="Unit of heart rate").fill("per min")
    page.get_by_role("searchbox", name="Search columns").click()
    expect(said).to_have_count(0)
    settled(page)
    expect(grid).to_be_visible()
    page.close()


@pytest.mark.shared_data
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_columns_of_real_cohorts_fit_every_screen(
    browser: Browser, served: Served, shared_data: Path, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    wrong = []
    files = [ward_csv(tmp_path), *(shared_data / f"{name}.csv" for name in COHORTS)]
    for file in files if scheme == "light" else files[:2]:  # what can be seen of a column is on each of them
        name = file.stem
        page = new_page(browser, scheme, WIDTHS[0], 1000)
        page.goto(served.address)
        choose_file(page, file)
        settled(page)
        for width in WIDTHS if scheme == "light" else WIDTHS[:1]:  # colours make nothing wider
            page.set_viewport_size({"width": width, "height": 1000})
            page.wait_for_timeout(700)
            page.screenshot(path=tmp_path / f"{name}-{width}-{scheme}.png", full_page=True)
            wrong += [f"{name} at {width}: '{text}' is cut" for text in page.evaluate(CUT)]
            wrong += [f"{name} at {width}: {beyond} pixels too wide" for beyond in page.evaluate(BEYOND) if beyond > 0]
        wrong += findings(page, name)
        page.close()
    assert wrong == [], "\n".join(wrong)


@pytest.mark.shared_data
def test_several_hundred_columns_are_folded_and_found(browser: Browser, served: Served, shared_data: Path) -> None:
    page = new_page(browser)
    page.goto(served.address)
    choose_file(page, shared_data / "metabric_pam50_wide.csv")
    settled(page)
    rows = page.locator(".l2m-columns li")
    assert rows.count() == 40
    page.get_by_role("searchbox", name="Search columns").fill("brca")
    expect(rows).to_have_count(2)
    page.get_by_role("searchbox", name="Search columns").fill("")
    page.get_by_role("button", name=re.compile("Show 450 more columns")).click()
    expect(rows).to_have_count(490)
    page.close()


def test_the_range_of_large_numbers_is_read_whole(browser: Browser, served: Served, tmp_path: Path) -> None:
    charges = 5e9 + 1e9 * np.random.default_rng(3).normal(size=300)
    ward().drop(columns="died").assign(charges=charges.round(-4)).to_csv(tmp_path / "charges.csv", index=False)
    page = new_page(browser)
    page.goto(served.address)
    choose_file(page, tmp_path / "charges.csv")
    press(page, "Save cohort")
    expect(page.get_by_text(re.compile(r"median; from [\d,]{13} to [\d,]{13}"))).to_be_visible()
    settled(page)
    assert page.evaluate(CUT) == []
    page.close()


def test_a_phone_shows_why_a_file_is_not_taken(browser: Browser, served: Served, tmp_path: Path) -> None:
    file = tmp_path / "ward.docx"
    file.write_bytes(b"PK")
    page = new_page(browser, width=390, height=844)
    page.goto(served.address)
    settled(page)
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(str(file))
    refusal = page.get_by_text("files are not allowed")
    refusal.scroll_into_view_if_needed()
    shown = refusal.bounding_box()
    assert shown is not None and shown["width"] > 200 and shown["height"] > 15
    expect(page.get_by_role("button", name="Add files")).to_be_in_viewport(ratio=1)
    page.close()


def test_a_column_that_is_refused_is_not_called_empty(browser: Browser, served: Served, tmp_path: Path) -> None:
    book = openpyxl.load_workbook(ward_workbook(tmp_path))
    sheet = book["Ward"]
    (lactate,) = [column for column in sheet.columns if column[0].value == "lactate"]
    lactate[4].value, lactate[4].number_format = 0.48, "0%"  # among numbers that are none
    book.save(tmp_path / "percent.xlsx")
    page = new_page(browser)
    page.goto(served.address)
    choose_file(page, tmp_path / "percent.xlsx")
    refused = page.locator(".l2m-columns li").filter(has_text="lactate")
    expect(refused).to_contain_text("not read")
    expect(refused).not_to_contain_text("empty")
    expect(page.get_by_role("img", name="Distribution of lactate: not read")).to_have_count(1)
    page.close()

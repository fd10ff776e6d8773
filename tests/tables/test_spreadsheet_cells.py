"""No cell of an exported CSV begins a formula, whichever separator it is opened with."""

import csv
import io
import itertools

import pandas as pd
import pytest

from l2m_core.tables.spreadsheet_cells import plain_cell, plain_frame

ORDINARY = [
    "",
    "lactate",
    "2.1; -1.5",
    "-0.5",
    "+49",
    "1e-3",
    "drawn already",
    "taken back; 3.0",
    "a;b",
    "ward 3-4",
    "p(yes)_before",
    "it's here",
    "'quoted'",
    "x\ny",
    "<5 µg/L",
]
PARTS = ["a", ";", "\t", "\n", "\r", "=1+1", "-2+3", "@SUM(A1)", "+cmd|' /C calc'!A0", '"', ",", " ", "-5", "\xa0"]


def begins_a_formula(cell: str) -> bool:
    """As a spreadsheet that takes blanks off; a number is none, nor is one behind a blank with a comma after it."""
    shown = cell.strip(" \xa0")
    try:
        float(shown.replace('"', ",").partition(",")[0] if cell.startswith(" ") else shown)
    except ValueError:
        return shown.startswith(("=", "+", "-", "@"))
    return False


def opened(text: str, delimiter: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) for cell in row]


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert plain_cell(text) == text


@pytest.mark.parametrize(
    "text",
    ["a;=1+1", "a; =1+1", "a\t=1+1", "a\n=1+1", "a\r\n@SUM(A1)", 'a;"=1+1', "a;;-2+3", "a;-1", "a;\t=1", "  =1+1"],
)
def test_each_piece_that_would_begin_a_formula_gets_an_apostrophe(text: str) -> None:
    assert plain_cell(text) != text and plain_cell(text).replace("'", "") == text
    assert plain_cell(plain_cell(text)).replace("'", "") == text


def test_no_text_of_three_parts_begins_a_formula_with_any_separator() -> None:
    for texts in itertools.product(PARTS, repeat=3):
        out = io.StringIO()
        csv.writer(out).writerow([1, plain_cell("".join(texts)), "between", plain_cell(texts[-1]), 0.5])
        for delimiter in (",", ";", "\t"):
            found = [cell for cell in opened(out.getvalue(), delimiter) if begins_a_formula(cell)]
            assert not found, (texts, delimiter, found)


def test_a_table_has_plain_names_and_texts_and_the_same_numbers() -> None:
    frame = pd.DataFrame({"p(a;=1+1)": [-0.5, 0.25], "=id": ["=1+1", "x;@SUM(A1)"], "row": [0, 1]})
    plain = plain_frame(frame)
    assert list(plain.columns) == ["p(a;'=1+1)", "'=id", "row"]
    assert plain["'=id"].tolist() == ["'=1+1", "x;'@SUM(A1)"]
    assert plain["row"].tolist() == [0, 1] and plain["p(a;'=1+1)"].tolist() == [-0.5, 0.25]
    assert plain.dtypes["row"] == frame.dtypes["row"]

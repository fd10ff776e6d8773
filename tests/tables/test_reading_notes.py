"""What was read how is told before a cohort is stored: one note for each liberty, what changes most first."""

import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.tables.reading_notes import KINDS, CellNote, reading_report
from tests.core.ward import N, icu_cohort


def column(*cells) -> list:
    return (list(cells) * N)[:N]


@pytest.fixture(scope="module")
def cohort():
    columns = {
        "troponin": column("<5", "7", "12", "<5", "31"),
        "lactate": column("1,5", "2,25", "NA", "3"),
        "platelets": column("1 250 000", "900 000", "NA", "850 000"),
        "culture": column("+", "-", "++", "NA"),
        "ward": column("icu", "IC\u00dc", "home"),
        "smoker": column("yes", "no", "Yes"),
        "code": column("007", "012", "113"),
        "height": column("-999", "160", "171", "182"),
        "age": [40 + i % 30 for i in range(N)],
        "sex": column("F", "M"),
        "site": column("A"),
        "y": column("0", "1"),
    }
    data = pd.DataFrame(columns).to_csv(index=False, sep=";").encode("cp1252")
    return Cohort.from_csv(data, "y", censored="limit", missing=["-999"])


@pytest.fixture(scope="module")
def report(cohort):
    return reading_report(cohort)


def of_kind(report, kind):
    return [note for note in report if note.kind == kind]


@pytest.mark.parametrize(
    ("kind", "columns", "example", "cells"),
    [
        ("limit", ("troponin",), "<5 → 5", "16 cells"),
        ("comma", ("lactate",), "1,5 → 1.5", "decimal comma"),
        ("thousands", ("platelets",), "1 250 000 → 1250000", "thousands"),
        ("minus", ("culture",), "- → a result", "10 cells"),
        ("joined", ("smoker",), "Yes → yes", "13 cells"),
        ("code", ("code",), "007", "codes"),
        ("unused", ("site",), "holds one and the same value and is not used", "Not used: 'site'. It holds one"),
        ("number", ("height", "age"), "", "'height', 'age'"),
    ],
)
def test_each_liberty_is_told_with_its_columns_and_a_cell(report, kind, columns, example, cells):
    (note,) = of_kind(report, kind)
    assert (note.columns, note.example) == (columns, example) and cells in note.text


def test_each_text_that_means_not_recorded_is_a_note_of_its_own(report):
    notes = {note.example: note for note in of_kind(report, "missing")}
    assert notes["NA → not recorded"].columns == ("lactate", "platelets", "culture")
    assert notes["-999 → not recorded"].columns == ("height",)
    assert "30 cells" in notes["NA → not recorded"].text and "10 cells" in notes["-999 → not recorded"].text


def test_how_the_file_was_taken_apart_is_told(report):
    (note,) = of_kind(report, "file")
    assert note.text == "Read as Windows-1252, with columns separated by semicolon." and note.columns == ()


def test_kinds_come_in_order_and_every_used_column_stands_somewhere(cohort, report):
    order = list(KINDS)
    assert [order.index(note.kind) for note in report] == sorted(order.index(note.kind) for note in report)
    assert {name for note in report for name in note.columns} == {*cohort.names, "site", "y"}


def test_look_alikes_rare_levels_and_rounding_are_told():
    many = [f"w{i % 300}" for i in range(400)]
    table = pd.DataFrame(
        {
            "ward": (["icu", "icu\u200b", "home", "x"] * 100),
            "many": many,
            "big": [16_777_217 + 2 * i for i in range(400)],
            "y": [0, 1] * 200,
        }
    )
    schema = {"features": [{"name": "many", "kind": "category"}]}
    report = reading_report(Cohort.from_csv(table.to_csv(index=False).encode(), "y", schema=schema))
    (alike,), (rare,), (rounded,) = (of_kind(report, kind) for kind in ("lookalike", "rare", "rounded"))
    assert alike.columns == ("ward",) and "icu\\u200b" in alike.example
    assert rare.columns == ("many",) and rare.example.endswith("→ other")
    assert rounded.columns == ("big",) and rounded.example.startswith("16777217 → ")


def test_a_sentence_names_few_columns_and_the_note_has_them_all():
    table = pd.DataFrame({**{f"c{i}": [i + k / 7 for k in range(N)] for i in range(12)}, "y": [0, 1] * (N // 2)})
    (note,) = of_kind(reading_report(Cohort.from_frame(table, "y")), "number")
    assert len(note.columns) == 12 and note.text.endswith("and 7 more columns.")


def test_arrays_have_no_report_and_frames_no_file():
    x = [[float(i), float(i % 3)] for i in range(N)]
    assert reading_report(Cohort.from_arrays(x, [0, 1] * (N // 2))) == []
    assert of_kind(reading_report(icu_cohort()), "file") == []


def test_a_cohort_keeps_its_notes_by_column(cohort):
    assert cohort.notes["troponin"] == (CellNote("limit", "<5", "5", 16),)

"""A table with a row for each measurement becomes one with a row for each patient."""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.errors import CohortError, InputError
from l2m_core.tables import reading_options
from l2m_core.tables.frames import table_from_frame
from l2m_core.tables.measurements import Measurements, find_measurements, one_row_each, with_unit
from l2m_core.tables.reading import read_table
from l2m_core.tables.table import Limits, NumberColumn, RefusedColumn, TextColumn

PATIENTS = 24
TESTS = {"sodium": "mmol/L", "crp": "mg/L", "hb": "g/dL"}


def result(patient: int, test: str, time: int) -> float:
    return 10 * patient + list(TESTS).index(test) + time / 4


def long_frame(times: int = 2) -> pd.DataFrame:
    """Two of the three tests of each patient, at each time; the sex and outcome are the patient's."""
    rows = [
        (
            f"P{patient}",
            test,
            result(patient, test, time),
            unit,
            f"2024-01-{1 + time:02}",
            "fm"[patient % 2],
            patient % 3 == 0,
        )
        for patient in range(PATIENTS)
        for number, (test, unit) in enumerate(TESTS.items())
        if (patient + number) % 3
        for time in range(times)
    ]
    return pd.DataFrame(rows, columns=["patient_id", "test", "value", "unit", "taken", "sex", "died"])


def csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


@pytest.mark.parametrize(("which", "time"), [("first", 0), ("last", 1)])
def test_each_patient_gets_a_row_with_the_results_of_each_test(which, time):
    table = one_row_each(table_from_frame(long_frame()), which)
    assert table.names == ("patient_id", "crp (mg/L)", "hb (g/dL)", "sodium (mmol/L)", "sex", "died")
    assert table.column("patient_id").cells() == [f"P{patient}" for patient in range(PATIENTS)]
    assert table.column("sex").cells() == ["fm"[patient % 2] for patient in range(PATIENTS)]
    for number, (test, unit) in enumerate(TESTS.items()):
        column = table.column(f"{test} ({unit})")
        assert isinstance(column, NumberColumn)
        expected = [result(p, test, time) if (p + number) % 3 else np.nan for p in range(PATIENTS)]
        np.testing.assert_array_equal(column.values, expected)


def test_rows_in_any_order_give_the_same_results():
    """The first of a patient's results is the first of the file; patients come in the order of their first rows."""
    frame = long_frame(times=1).sample(frac=1, random_state=0)
    table = one_row_each(read_table(csv(frame)))
    assert table.column("patient_id").cells() == list(dict.fromkeys(frame["patient_id"]))
    for patient, cell in zip(table.column("patient_id").cells(), table.column("crp (mg/L)").cells(), strict=True):
        assert cell == "" or float(cell) == result(int(patient[1:]), "crp", 0)


def test_what_was_done_is_said():
    table = one_row_each(table_from_frame(long_frame()))
    said = " ".join(table.warnings)
    assert "96 rows, one for each measurement ('test' names the test and 'value' is its result)" in said
    assert "one for each of 24 patients" in said and "first in the file was taken: 48 more were not" in said
    assert "differ between rows of a patient or cannot be read: 'taken'" in said


def test_rows_without_patient_or_test_are_left_out_and_said():
    frame = long_frame(times=1)
    frame.loc[0, "patient_id"], frame.loc[3, "test"] = None, "NA"
    table = one_row_each(read_table(csv(frame)))
    assert "2 rows were left out, as they name no patient or no test." in table.warnings


def test_texts_stay_as_they_are():
    frame = long_frame(times=1).astype({"value": object})
    frame.loc[frame["test"] == "crp", "value"] = "<5"
    column = one_row_each(read_table(csv(frame))).column("crp (mg/L)")
    assert isinstance(column, TextColumn) and set(column.cells()) == {"<5", ""}


def test_a_test_in_several_units_is_refused_where_it_is_used():
    frame = long_frame(times=1)
    crp = frame.index[frame["test"] == "crp"]
    frame.loc[crp[:3], "unit"] = "mg/dL"
    table = one_row_each(table_from_frame(frame))
    column = table.column("crp")
    assert isinstance(column, RefusedColumn) and "several units: mg/dL, mg/L" in column.problem
    frame.loc[crp, "unit"], frame.loc[crp[:3], "unit"] = "mg/L", "MG / l"  # one unit, written in two ways
    assert "crp (MG / l)" in one_row_each(table_from_frame(frame)).names


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (
            ("subject_id", "itemid", "valuenum", "valueuom"),
            Measurements("subject_id", "itemid", "valuenum", "valueuom"),
        ),
        (("PatientID", "TestName", "Result", "Units"), Measurements("PatientID", "TestName", "Result", "Units")),
        (
            ("Pat-Nr", "Untersuchung", "Ergebnis", "Einheit"),
            Measurements("Pat-Nr", "Untersuchung", "Ergebnis", "Einheit"),
        ),
        (("patient", "paramètre", "résultat", "unité"), Measurements("patient", "paramètre", "résultat", "unité")),
        (("patient", "visit", "lactate", "unit"), None),
        (("ward", "test", "value", "unit"), None),
    ],
)
def test_the_columns_are_found_by_their_names(names, found):
    frame = long_frame().rename(columns=dict(zip(["patient_id", "test", "value", "unit"], names, strict=True)))
    assert find_measurements(table_from_frame(frame)) == found


def test_a_name_tells_more_than_a_number_and_more_results_than_fewer():
    frame = long_frame()
    frame.insert(1, "itemid", frame["test"].map({"sodium": 50983, "crp": 50889, "hb": 51222}))
    frame.insert(1, "valuenum", frame["value"].where(frame["test"] != "hb"))
    assert find_measurements(read_table(csv(frame))) == Measurements("patient_id", "test", "value", "unit")


def test_a_row_for_each_patient_is_no_table_of_measurements():
    wide = pd.DataFrame({"patient_id": range(40), "test": ["a", "b"] * 20, "value": range(40), "died": [0, 1] * 20})
    assert find_measurements(table_from_frame(wide)) is None
    with pytest.raises(
        CohortError, match="no row for each measurement: columns such as 'patient_id', 'test' and 'value'"
    ):
        one_row_each(table_from_frame(wide))


def test_python_says_what_it_sees_and_does_what_it_is_told():
    data = csv(long_frame())
    with pytest.raises(
        CohortError, match="'taken'.*is a date.*Each row seems to be a measurement.*State measurements: 'first'"
    ):
        l2m.Cohort.from_file(data, outcome="died")
    as_it_is = l2m.Cohort.from_file(data, outcome="died", schema="features:\n- {name: taken, role: ignored}\n")
    assert len(as_it_is) == 96 and any("State measurements: 'first'" in warning for warning in as_it_is.warnings)
    cohort = l2m.Cohort.from_file(data, outcome="died", measurements="last")
    assert len(cohort) == PATIENTS and cohort.names == ("crp (mg/L)", "hb (g/dL)", "sodium (mmol/L)", "sex")
    with pytest.raises(CohortError, match="measurements is 'mean'; it must be one of first, last"):
        l2m.Cohort.from_file(data, outcome="died", measurements="mean")


@pytest.mark.parametrize("stated", [{"outcome": "died"}, {"outcome": "sex", "baseline": ["died"]}])
def test_a_column_that_differs_between_rows_of_a_patient_is_missed_with_the_reason(stated):
    frame = long_frame()
    frame.loc[0, "died"] = not frame.died[0]
    with pytest.raises(
        InputError, match="no column 'died'.* 'died' was left out, as it differs between rows of a patient"
    ):
        l2m.Cohort.from_file(csv(frame), measurements="last", **stated)


def test_commands_take_the_same_words():
    parser = argparse.ArgumentParser()
    reading_options.add_options(parser)
    options = reading_options.chosen(parser.parse_args(["--measurements", "first", "--missing", "k.A."]))
    frame = long_frame(times=1).astype({"value": object})
    frame.loc[frame.index[frame["test"] == "crp"][:4], "value"] = "k.A."
    frame = frame.drop(columns="taken")
    cohort = l2m.Cohort.from_file(csv(frame), outcome="died", **options.keywords())
    assert len(cohort) == PATIENTS and cohort.r[:, cohort.names.index("crp (mg/L)")].sum() == 12


def test_a_file_of_measurements_may_have_more_rows_than_one_of_patients():
    data, limits = csv(long_frame()), Limits(rows=50)
    table = read_table(data, limits=limits)
    assert table.rows == 96 and one_row_each(table, limits=limits).rows == PATIENTS
    assert len(l2m.Cohort.from_file(data, outcome="died", measurements="first", limits=limits)) == PATIENTS
    with pytest.raises(CohortError, match="96 rows; at most 50"):
        l2m.Cohort.from_file(data, outcome="died", limits=limits)
    with pytest.raises(CohortError, match="more than 90 rows"):
        read_table(data, limits=Limits(rows=50, measurements=90))
    of_visits = long_frame().rename(columns={"patient_id": "ward"})
    with pytest.raises(CohortError, match="more than 50 rows"):
        read_table(csv(of_visits), limits=limits)
    once = long_frame()  # the names alone make no table of measurements
    once["patient_id"] = range(len(once))
    with pytest.raises(CohortError, match="more than 50 rows"):
        read_table(csv(once), limits=limits)


def test_more_tests_than_a_table_may_have_are_refused():
    with pytest.raises(CohortError, match="at most 4 are read"):
        one_row_each(table_from_frame(long_frame()), limits=Limits(columns=4))


@pytest.mark.parametrize(
    ("test", "unit", "name"),
    [
        ("weight", "g", "weight (g)"),
        ("sodium", "mmol/L", "sodium (mmol/L)"),
        ("sodium mmol/l", "mmol/L", "sodium mmol/l"),
        ("sodium (mmol / L)", "mmol/L", "sodium (mmol / L)"),
        ("HbA1c%", "%", "HbA1c%"),
        ("CK [U/L]", "U/L", "CK [U/L]"),
        ("tsh \u03bcU/ml", "\u00b5U/mL", "tsh \u03bcU/ml"),
        ("pH", "", "pH"),
        ("pH", " ", "pH"),
    ],
)
def test_a_unit_joins_the_name_unless_it_stands_there_as_a_word(test, unit, name):
    assert with_unit(test, unit) == name


def test_sodium_is_a_test_though_na_means_nothing_elsewhere():
    draw, lines = np.random.default_rng(0), ["patient_id,test,result,unit,died"]
    for patient in range(60):
        for test, value in (("Hb", 13), ("Na", 140), ("CRP", 5)):
            result = "NA" if (patient, test) == (3, "CRP") else f"{draw.normal(value, 1):.1f}"
            lines.append(f"P{patient},{test},{result},,{patient % 2}")
    cohort = l2m.Cohort.from_csv("\n".join(lines).encode(), outcome="died", measurements="first")
    assert cohort.names == ("Hb", "Na", "CRP") and len(cohort) == 60
    assert cohort.r.sum(0).tolist() == [60, 60, 59]

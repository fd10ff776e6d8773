"""Patients in tables and JSON records are read by the cohort's own rules; what is not used is listed."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import date

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.errors import FeatureError, InputError
from l2m_core.patients import read_patients
from tests.patients.ward import ward
from tests.tables.workbooks import workbook


@pytest.fixture(scope="module")
def cohort():
    return ward()


def why(record) -> dict[str, str]:
    return {left.what: left.kind for left in record.unused}


def test_a_pasted_row_becomes_a_patient(cohort):
    (record,) = read_patients("age\tsex\tlactate\n71\tm\t3.2\n", cohort).patients
    assert record.values == {"age": 71, "sex": "m", "lactate": 3.2} and record.unused == ()
    assert (record.label, record.limits) == ("row 2", {})


def test_every_row_is_a_patient_and_empty_cells_are_not_measured(cohort):
    found = read_patients(b"age;lactate\n71;4,2\n\n55;\n", cohort)
    assert [dict(record.values) for record in found.patients] == [{"age": 71, "lactate": 4.2}, {"age": 55}]
    assert [record.label for record in found.patients] == ["row 2", "row 4"]  # as a spreadsheet shows them


def test_an_accent_typed_as_a_character_of_its_own_is_the_same_text():
    rows = np.arange(40)
    frame = pd.DataFrame(
        {"Größe": rows % 7 + 170, "Maß": np.array(["groß", "süß", "klein"])[rows % 3], "died": rows % 2}
    )
    cohort = l2m.Cohort.from_frame(frame, "died")
    apart = unicodedata.normalize("NFD", '{"Größe": 171, "Maß": "süß"}')
    (record,) = read_patients(apart, cohort).patients
    assert set(record.values) == {"Größe", "Maß"} and (record.unused, record.notes) == ((), ())
    assert cohort.encode([record.values]).tolist() == [[171, cohort.feature("Maß").levels.index("süß")]]
    (twice,) = read_patients(json.dumps({"Größe": 171, unicodedata.normalize("NFD", "Größe"): 172}), cohort).patients
    assert twice.values == {} and why(twice) == {"Größe": "doubt"}


@pytest.mark.parametrize("start", ["", "\x0b", "\ufeff"])
def test_an_hl7_v2_message_is_refused_as_what_it_is(cohort, start):
    message = f"{start}MSH|^~\\&|LAB|||||ORU^R01|1|P|2.5\rPID|1\rOBX|1|NM|2524-7^Lactate^LN||3.2|mmol/L|||||F\r"
    with pytest.raises(InputError, match="This is an HL7 v2 message"):
        read_patients(message, cohort)


def test_one_column_is_enough(cohort):
    assert read_patients("age\n71", cohort).patients[0].values == {"age": 71}


def test_a_workbook_is_a_table_too(cohort):
    rows = [
        ["age", "sex", "lactate", "sodium", "seen"],
        [71, "m", 1.125, "<140", date(2024, 1, 2)],
        [55, "f", None, 138],
    ]
    first, second = read_patients(workbook(Data=rows), cohort).patients
    assert first.values == {"age": 71, "sex": "m", "lactate": 1.125, "sodium": 140} and first.limits == {
        "sodium": "below"
    }
    assert (first.label, why(first)) == ("row 2", {"seen": "unknown"})
    assert second.values == {"age": 55, "sex": "f", "sodium": 138}


def test_numbers_of_a_workbook_need_no_decimal_sign():
    """Of a cohort with decimal commas, 1.125 as text would be more than a thousand."""
    of_commas = ward(decimal=",", missing=["-999"])
    first, second = read_patients(workbook(Data=[["age", "lactate"], [71, 1.125], [55, -999]]), of_commas).patients
    assert first.values == {"age": 71, "lactate": 1.125} and second.values == {"age": 55}


def test_a_date_where_a_result_belongs_is_not_used(cohort):
    (record,) = read_patients(workbook(Data=[["age", "lactate"], [71, date(2024, 2, 1)]]), cohort).patients
    assert record.values == {"age": 71} and "dates or times" in record.unused[0].why


def test_a_workbook_of_several_sheets_is_refused(cohort):
    with pytest.raises(InputError, match="several sheets"):
        read_patients(workbook(A=[["age"], [71]], B=[["age"], [72]]), cohort)


def test_json_is_one_record_or_several(cohort):
    assert read_patients('{"age": 71, "scan": "dense"}', cohort).patients[0].values == {"age": 71, "scan": "dense"}
    labels = [record.label for record in read_patients(json.dumps([{"age": 1}, {"age": 2}]), cohort).patients]
    assert labels == ["patient 1", "patient 2"]


def test_values_are_read_as_the_cohort_was(cohort):
    csv = "age,lactate,sodium\n71,-999,140\n"
    assert read_patients(csv, ward(missing=["-999"])).patients[0].values == {"age": 71, "sodium": 140}
    (record,) = read_patients(csv, cohort).patients
    assert "-999 is outside the allowed range" in record.unused[0].why and "lactate" not in record.values
    (doubtful,) = read_patients('age,sodium\n71,"1,234"\n', cohort).patients
    assert "read in two ways" in doubtful.unused[0].why


@pytest.mark.parametrize(("cell", "limit"), [("<5", "below"), ("≤ 5", "below"), (">5", "above"), ("≥5", "above")])
def test_a_detection_limit_is_a_value_with_its_sign(cohort, cell, limit):
    (record,) = read_patients(f"age,lactate\n71,{cell}\n", cohort).patients
    assert record.values["lactate"] == 5 and record.limits == {"lactate": limit}


def test_what_is_not_used_is_listed_with_its_reason(cohort):
    csv = "age,bed,died,lactat,sodium,scan\n71,9,yes,3,plenty,opaque\n"
    (record,) = read_patients(csv, cohort).patients
    assert why(record) == {"bed": "not read", "died": "not read", "lactat": "unknown", "sodium": "value"}
    assert "Did you mean 'lactate'?" in str(record.unused[2])
    assert record.values == {"age": 71, "scan": "opaque"} and "read as 'other'" in record.notes[0]


def test_a_record_begins_a_step_through(cohort, general):
    (record,) = read_patients("age,lactate\n71,<5\n", cohort).patients
    started = general.condition(cohort).start(record.values, limits=record.limits)
    assert started.known == {"age": 71, "lactate": 5} and started.state.limits == {"lactate": "below"}


def test_two_columns_of_one_name_are_not_chosen_between(cohort):
    (record,) = read_patients("age,lactate,lactate\n71,3,4\n", cohort).patients
    assert record.values == {"age": 71} and why(record)["lactate"] == "doubt"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "nothing to read"),
        ("   \n ", "nothing to read"),
        ("71,m,3.2", "names the columns"),
        ("71,m\n72,f", "None of the columns"),
        ("thickness,clumps\n5,3", "None of the columns is one of this cohort's"),
        ("age,lactate\n71", "Row 2 has 1 cells"),
        ("[]", "holds no patient"),
        ("[1, 2]", "holds no patient"),
        ('{"age": 1, "age": 2}', "'age' twice"),
        ('{"age": NaN}', "must be finite"),
        ('{"age": ', "not valid JSON"),
        ('{"age": "\\ud800"}', "surrogate"),
        ('{"thickness": 5}', "None of the names is one of this cohort's. Each value needs its feature's name"),
        (b'{"age": "\xff"}', "not UTF-8"),
        (b"PK\x03\x04....\n..", "Excel"),
        ("[" * 100 + "]" * 100, "levels deep"),
    ],
)
def test_what_holds_no_patient_is_refused_in_words(cohort, text, words):
    with pytest.raises(InputError, match=words):
        read_patients(text, cohort)


def test_too_much_is_refused(cohort):
    with pytest.raises(InputError, match="larger than 5 MB"):
        read_patients(b"age\n" + b"7\n" * 2_600_000, cohort)
    with pytest.raises(InputError, match="more than 1,000 rows"):
        read_patients("age\n" + "7\n" * 1001, cohort)
    with pytest.raises(InputError, match="1,001 patients"):
        read_patients(json.dumps([{"age": 1}] * 1001), cohort)


@pytest.mark.parametrize("value", [[1], {"value": 1}, True, "high"])
def test_a_value_of_another_shape_is_not_used(cohort, value):
    (record,) = read_patients(json.dumps({"age": 71, "lactate": value}), cohort).patients
    assert record.values == {"age": 71} and why(record) == {"lactate": "value"}


def test_a_row_of_another_cohort_names_what_there_is(cohort):
    with pytest.raises(FeatureError, match="There are: 'age', 'sex'"):
        read_patients("thickness,clumps\n5,3", cohort)


def test_a_limit_that_many_results_lie_beyond_is_said_to_be_used_as_it_stands() -> None:
    """'>60' of a filtration rate is most of its range, and no end of what can be measured."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"eGFR": draw.uniform(10, 130, 200).round(), "crp": np.maximum(draw.normal(4, 3, 200), 1).round(1)}
    )
    cohort = l2m.Cohort.from_frame(frame.assign(died=draw.integers(0, 2, 200)), outcome="died")
    (patient,) = read_patients("eGFR,crp\n>60,<1", cohort).patients
    assert patient.values == {"eGFR": 60, "crp": 1} and patient.limits == {"eGFR": "above", "crp": "below"}
    (note,) = patient.notes
    assert re.fullmatch(
        r"eGFR >60 is used as 60, but 6\d% of the cohort's results lie above it, half of them beyond \d+\. .*", note
    )

"""Results as laboratories list them, a row for each, become what is known of patients."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.cohort import Cohort
from l2m_core.errors import FeatureError, InputError
from l2m_core.patients import read_patients
from l2m_core.tables.unit_guesses import written_unit
from tests.patients.ward import ward
from tests.tables.test_measurements import csv, long_frame
from tests.tables.workbooks import workbook

RESULTS = ("crp,12.5,mg/L", "hb,9,g/dL", "sodium,1,mg/L")
LIST = "test;result;unit\nLactate;3.2;mmol/l\nsodium;<140;mmol/L\nscan;dense;\n"


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return ward()


def why(record) -> dict[str, tuple[str, str]]:
    return {left.what: (left.kind, left.why) for left in record.unused}


def test_a_list_of_one_patient_is_read_by_names_and_units(cohort):
    brought = read_patients(LIST, cohort)
    (record,) = brought.patients
    assert brought.form == "results" and record.label == "patient 1" and not record.unused
    assert record.values == {"lactate": 3.2, "sodium": 140, "scan": "dense"} and record.limits == {"sodium": "below"}


def test_what_stands_beside_the_results_is_the_patients_own(cohort):
    text = "patient_id,test,value,unit,sex,age\n7,lactate,3.2,mmol/L,m,71\n9,lactate,1.1,mmol/L,f,50\n7,sodium,139,mmol/L,m,72\n"
    first, second = read_patients(text, cohort).patients
    assert first.values == {"sex": "m", "lactate": 3.2, "sodium": 139}
    assert why(first)["age"] == ("doubt", "It differs between the patient's rows.")
    assert second.values == {"sex": "f", "age": 50, "lactate": 1.1}
    assert [record.label for record in (first, second)] == ["patient 1", "patient 2"]  # and not 7 and 9


def test_what_is_not_sure_is_left_out_with_its_reason(cohort):
    rows = [
        "lactate,3.2,mg/dL",
        "sodium,139,mmol/L",
        "sodium,141,mmol/L",
        "systolic,120,",
        "ferritin,80,ug/L",
        "sodium,139,mmol/L",
    ]
    (record,) = read_patients("test,value,unit\n" + "\n".join(rows), cohort).patients
    assert record.values == {}
    left = why(record)
    assert left["lactate"] == ("unit", "It is in mg/dL, but 'lactate' is in mmol/L. Nothing was converted.")
    assert left["sodium"] == ("doubt", "There are 3 results. Keep the one that counts.")
    assert left["systolic"][0] == "unit" and left["ferritin"][0] == "unknown"
    twice = "test,value,unit\nlactate,3.2,mmol/L\nlactate,3.2,mmol/L\n"
    assert read_patients(twice, cohort).patients[0].values == {"lactate": 3.2}


def test_a_test_is_called_as_in_a_cohort_that_was_such_a_list(cohort):
    """By its name rather than its number, whichever column comes first."""
    text = "itemid,label,value,valueuom\n50813,Lactate,3.2,mmol/L\n50983,Sodium,139,mmol/L\n"
    assert read_patients(text, cohort).patients[0].values == {"lactate": 3.2, "sodium": 139}


def test_a_unit_in_square_brackets_behind_a_name_is_a_unit_too():
    numbers = [i * 7 % 31 / 2 for i in range(30)]
    frame = pd.DataFrame({"CRP [mg/l]": numbers, "Leukozyten [G/l]": numbers[::-1], "died": ["no", "yes"] * 15})
    schema = {"features": [{"name": name, "unit": written_unit(name)} for name in frame.columns[:2]]}
    cohort = Cohort.from_frame(frame, "died", schema=schema)
    assert cohort.feature("Leukozyten [G/l]").unit == "G/l"
    (record,) = read_patients("Test;result;unit\nCRP;12,5;mg/L\nLeukozyten;9,8;G/l\n", cohort).patients
    assert record.values == {"CRP [mg/l]": 12.5, "Leukozyten [G/l]": 9.8}


def test_results_that_name_no_patient_are_not_made_one_of_their_own(cohort):
    with pytest.raises(InputError, match="Some results name no patient. Fill in the column 'patient_id'"):
        read_patients("patient_id,test,value\n7,lactate,3.2\n,sodium,139\n", cohort)


def test_a_list_without_units_is_read_as_a_table_is(cohort):
    assert read_patients("test\tresult\nlactate\t3.2\n", cohort).patients[0].values == {"lactate": 3.2}


def test_a_cohort_that_was_such_a_list_takes_one_of_a_patient():
    cohort = Cohort.from_file(csv(long_frame()), outcome="died", measurements="first")
    lines = ("patient_id,test,value,unit,taken,sex", *(f"X1,{result},2024-05-01,f" for result in RESULTS))
    text = "\n".join(lines)
    (record,) = read_patients(text, cohort).patients
    assert record.values == {"sex": "f", "crp (mg/L)": 12.5, "hb (g/dL)": 9} and set(why(record)) == {"sodium"}


def test_a_unit_that_the_schema_does_not_state_is_said():
    plain = Cohort.from_csv(
        b"age,crp,died\n" + b"\n".join(b"%d,%d.5,%d" % (40 + 7 * i % 31, i % 9, i % 2) for i in range(30)), "died"
    )
    (record,) = read_patients("test,value,unit\ncrp,12,mg/L\n", plain).patients
    assert record.values == {"crp": 12} and record.notes == ("crp: it is in mg/L; the schema states no unit.",)


def test_a_list_whose_results_cannot_be_read_says_why(cohort):
    rows = [["test", "result"], ["lactate", 3.6], ["sodium", date(2024, 2, 1)]]
    with pytest.raises(FeatureError, match="'result', row 3: '2024-02-01' is a date among other values"):
        read_patients(workbook(Results=rows), cohort)


def test_a_list_may_come_as_a_workbook(cohort):
    rows = [
        ["test", "value", "unit", "taken"],
        ["lactate", 1.125, "mmol/L", date(2024, 1, 2)],
        ["scan", "dense", None, None],
    ]
    (record,) = read_patients(workbook(Results=rows), cohort).patients
    assert record.values == {"lactate": 1.125, "scan": "dense"}


def test_a_cohort_with_a_feature_of_such_a_name_reads_rows_of_patients():
    table = b"test,value,died\n" + b"\n".join(b"%d,%d.5,%d" % (i % 7, i % 9, i % 2) for i in range(30))
    records = read_patients("test,value\n3,4.5\n", Cohort.from_csv(table, "died")).patients
    assert records[0].values == {"test": 3, "value": 4.5}


def test_two_spellings_of_one_test_are_two_results_of_it():
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"Na": draw.normal(140, 3, 60).round(), "Hb": draw.normal(13, 1, 60).round(1)})
    cohort = l2m.Cohort.from_frame(frame.assign(died=draw.integers(0, 2, 60)), outcome="died")
    (patient,) = read_patients("test,result\nNa,140\nNA,128\nhb,12.5", cohort).patients
    assert patient.values == {"Hb": 12.5}
    assert [(left.what, left.kind) for left in patient.unused] == [("Na", "doubt")]
    (patient,) = read_patients("test,result\nNa,140\nNA,140", cohort).patients
    assert patient.values == {"Na": 140}

"""Rows of one patient are told of, and stay together wherever rows are predicted from other rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.evidence import EvidenceSettings, make_plan
from l2m_core.tables.reading_notes import reading_report
from l2m_core.tabular.preparation import folds, prepare

ROWS, PATIENTS = 120, 50


def ward(column="patient_id", ids=None, **options) -> Cohort:
    generator = np.random.default_rng(0)
    x = np.round(generator.normal(size=ROWS), 2)
    patients = [f"P{i:03d}" for i in generator.integers(0, PATIENTS, ROWS)] if ids is None else ids
    frame = pd.DataFrame({column: patients, "lactate": x, "age": generator.integers(30, 90, ROWS)})
    frame["y"] = (x + generator.normal(size=ROWS) > 0).astype(int)
    return Cohort.from_csv(frame.to_csv(index=False).encode(), "y", **options)


def parted(fold, patient) -> int:
    """Patients whose rows lie in more than one fold."""
    return sum(len(set(fold[patient == number])) > 1 for number in np.unique(patient))


@pytest.mark.parametrize(
    "column", ["patient_id", "Patient ID", "MRN", "subject", "id", "study subject nr", "record_id"]
)
@pytest.mark.parametrize("as_numbers", [False, True])
def test_patients_with_several_rows_are_told_of_once_and_their_column_is_no_feature(column, as_numbers):
    ids = [500 + i % PATIENTS for i in range(ROWS)] if as_numbers else None
    cohort = ward(column, ids)
    assert column not in cohort.names and cohort.patient_column == column
    (warning,) = [warning for warning in cohort.warnings if "several rows (" in warning and "stay together" in warning]
    several = pd.Series(ids or cohort.frame()[column]).value_counts()
    assert f"{(several > 1).sum()} of {len(several)} patients have several rows" in warning
    (note,) = [note for note in reading_report(cohort) if note.kind == "repeated"]
    assert note.columns == (column,) and f"{several[several > 1].sum()} cells" in note.text


@pytest.mark.parametrize(
    ("column", "ids"),
    [
        ("patient_id", list(range(1000, 1000 + ROWS))),
        ("ward_id", [i % PATIENTS for i in range(ROWS)]),
        ("patient", [("adult", "child")[i % 2] for i in range(ROWS)]),
        ("subject", [0.5 + i % PATIENTS for i in range(ROWS)]),
        ("lab", [i % PATIENTS for i in range(ROWS)]),
        ("PT", [i % PATIENTS for i in range(ROWS)]),  # the prothrombin time
    ],
)
def test_other_columns_tell_no_patients_apart(column, ids):
    cohort = ward(column, ids)
    assert cohort.patient_column is None and cohort.patients is None
    assert "several rows" not in " ".join(cohort.warnings)


def test_the_folds_of_evidence_keep_a_patient_s_rows_together():
    cohort = ward()
    plan = make_plan(cohort, EvidenceSettings())
    assert plan.patient.max() + 1 < ROWS and parted(plan.fold, cohort.patients) == 0
    assert parted(make_plan(cohort, EvidenceSettings(patients="")).fold, cohort.patients) > 0
    assert EvidenceSettings().of(cohort) == EvidenceSettings(patients="patient_id")
    assert EvidenceSettings().of(cohort.rows(slice(0, 3))) == EvidenceSettings(patients="patient_id")


def test_the_folds_of_methods_keep_a_patient_s_rows_together():
    context = prepare(ward())
    fold = folds(context, 5, np.random.default_rng(0))
    assert parted(fold, context.patient) == 0 and np.bincount(fold).min() > 0
    alone = replace(context, patient=None)
    assert parted(folds(alone, 5, np.random.default_rng(0)), context.patient) > 0
    part = context.rows(np.arange(0, ROWS, 2))
    assert parted(folds(part, 3, np.random.default_rng(0)), part.patient) == 0


def test_a_stored_cohort_knows_its_patients_whatever_its_schema_says():
    cohort = ward()
    opened = Cohort.restored(cohort.frame(), cohort.schema, cohort.content_hash)
    assert np.array_equal(opened.patients, cohort.patients)
    schema = {"features": [{"name": "patient_id", "kind": "number"}]}
    used = ward("patient_id", [i % PATIENTS for i in range(ROWS)], schema=schema)
    assert "patient_id" in used.names and used.patient_column == "patient_id"


def test_rows_of_a_part_are_of_the_same_patients():
    cohort, index = ward(), np.arange(10, 60)
    part = cohort.rows(index)
    same = part.patients[:, None] == part.patients[None]
    assert np.array_equal(same, (cohort.patients[:, None] == cohort.patients[None])[np.ix_(index, index)])


def test_long_numbers_of_patients_who_have_one_row_each_tell_nobody_of_several():
    cohort = ward(ids=[1234567890123456000 + 10 * i for i in range(ROWS)])  # as 64-bit floats a dozen or two are one
    assert cohort.patient_column is None and cohort.patients is None
    assert "patient_id" not in cohort.names
    assert any("120 different values in 120 rows" in warning for warning in cohort.warnings)


def test_long_numbers_of_patients_with_several_rows_keep_these_apart_from_others():
    numbers = np.random.default_rng(0).integers(0, PATIENTS, ROWS)
    cohort = ward(ids=[10**18 + int(number) for number in numbers])
    assert cohort.patient_column == "patient_id"
    assert len(np.unique(cohort.patients)) == len(np.unique(numbers))

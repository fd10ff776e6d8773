"""Who is asked and who answers: nobody answers for himself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import l2m_core as l2m
from l2m_core.errors import CohortError, ConfigError
from l2m_core.evidence import EvidenceSettings, make_plan
from l2m_core.evidence.folds import assign_folds
from tests.evidence.conftest import SETTINGS, small_cohort, small_frame


def test_the_context_of_a_fold_never_holds_a_row_that_is_asked(plan):
    for fold in range(plan.folds):
        assert not set(plan.context(fold)) & set(plan.asked_of(fold))
    asked = np.concatenate([plan.asked_of(fold) for fold in range(plan.folds)])
    assert sorted(asked) == sorted(plan.asked)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(10, 60))
def test_rows_of_one_patient_share_a_fold_and_folds_hold_equally_many_patients(seed, folds, patients):
    draw = np.random.default_rng(seed)
    patient = np.unique(draw.integers(0, patients, 3 * patients), return_inverse=True)[1]
    fold = assign_folds(patient, draw.integers(0, 2, len(patient)).astype(float), folds, draw)
    of_patient = {number: set(fold[patient == number]) for number in np.unique(patient)}
    assert all(len(parts) == 1 for parts in of_patient.values())
    counts = np.bincount([next(iter(parts)) for parts in of_patient.values()], minlength=folds)
    assert counts.max() - counts.min() <= 1


def test_every_fold_has_its_share_of_each_outcome(cohort):
    plan = make_plan(cohort, replace(SETTINGS, folds=5))
    for code in (0, 1):
        counts = np.bincount(plan.fold[cohort.y == code], minlength=5)
        assert counts.max() - counts.min() <= 2


def test_the_rows_asked_are_bounded_and_come_from_all_folds_alike(cohort):
    plan = make_plan(cohort, replace(SETTINGS, most_rows=20, folds=4))
    assert [len(plan.asked_of(fold)) for fold in range(4)] == [5, 5, 5, 5]


def test_the_seed_decides_and_nothing_else(cohort):
    again, other = make_plan(cohort, SETTINGS), make_plan(cohort, replace(SETTINGS, seed=1))
    first = make_plan(cohort, SETTINGS)
    np.testing.assert_array_equal(first.fold, again.fold)
    np.testing.assert_array_equal(first.asked, again.asked)
    assert (first.fold != other.fold).any()


def test_copies_of_a_row_are_never_parted():
    frame = small_frame(40)
    frame = pd.concat([frame, frame.assign(record="again")], ignore_index=True)
    cohort = l2m.Cohort.from_frame(frame.drop(columns="record"), outcome="died")
    plan = make_plan(cohort, replace(SETTINGS, folds=4))
    np.testing.assert_array_equal(plan.fold[:40], plan.fold[40:])


def test_copies_of_a_row_with_one_number_are_never_parted():
    draw = np.random.default_rng(0)
    x, y = np.repeat(draw.normal(size=(30, 1)), 2, axis=0), np.repeat(np.arange(30) % 2, 2)
    plan = make_plan(l2m.Cohort.from_arrays(x, y), replace(SETTINGS, folds=4))
    np.testing.assert_array_equal(plan.fold[::2], plan.fold[1::2])


def test_patients_of_whom_nothing_is_recorded_are_not_one_patient():
    """Else the fold that holds them all would be asked of a context that knows none such, and the base rate be wrong."""
    draw = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = np.where((y == 1)[:, None] | (draw.random((120, 4)) < 0.2), np.nan, draw.normal(size=(120, 4)))
    plan = make_plan(l2m.Cohort.from_arrays(x, y), replace(SETTINGS, folds=5))
    assert plan.patient.max() + 1 == 120
    assert [int((y[plan.fold == fold] == 1).sum()) for fold in range(5)] == [12] * 5


def test_patients_who_are_alike_in_a_few_common_findings_are_not_one_patient():
    draw = np.random.default_rng(0)
    x = draw.integers(0, 2, (400, 3)).astype(float)
    y = (x.sum(1) + draw.random(400) > 2).astype(int)
    plan = make_plan(l2m.Cohort.from_arrays(x, y), replace(SETTINGS, folds=5))
    assert plan.patient.max() + 1 == 400


def test_a_column_tells_patients_apart_and_rows_without_one_stand_alone():
    frame = small_frame()
    frame["record"] = [f"P{row // 3}" if row < 30 else None for row in range(60)]
    cohort = l2m.Cohort.from_frame(frame, outcome="died", schema="features: [{name: record, role: ignored}]")
    plan = make_plan(cohort, replace(SETTINGS, patients="record"))
    assert plan.patient.max() + 1 == 10 + 30
    assert all(len(set(plan.fold[3 * number : 3 * number + 3])) == 1 for number in range(10))


def test_a_column_that_is_not_there_is_refused_by_name(cohort):
    with pytest.raises(CohortError, match="'ward'"):
        make_plan(cohort, replace(SETTINGS, patients="ward"))


def test_too_few_rows_are_refused():
    with pytest.raises(CohortError, match="15 rows"):
        make_plan(small_cohort(rows=15), SETTINGS)


def test_a_class_that_a_context_would_hardly_hold_is_refused_by_name():
    frame = small_frame()
    frame["died"] = ["no"] * 58 + ["yes"] * 2
    with pytest.raises(CohortError, match="'yes'"):
        make_plan(l2m.Cohort.from_frame(frame.drop(columns="record"), outcome="died"), SETTINGS)


@pytest.mark.parametrize(
    "wrong",
    [{"folds": 1}, {"budget": 0}, {"most_rows": 5}, {"policy": "random"}, {"policy": "fixed"}, {"seed": -1}],
)
def test_settings_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        EvidenceSettings(**wrong)

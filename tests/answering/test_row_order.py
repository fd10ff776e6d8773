"""With `row_order: content`, a table that is sorted otherwise gets the same answers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import l2m_core as l2m
from l2m_core.answering.row_order import arranged, content_order
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.memory import L2M, CohortMemory
from tests.golden.inside import GOLDEN_MODEL

TOLERANCE = 1e-5


def model(row_order: str, **further) -> L2M:
    release = l2m.load().release
    inference = dataclasses.replace(release.inference, row_order=row_order, **further)
    return L2M(dataclasses.replace(release, inference=inference))


def cohort_of(rows: int, classes: int, seed: int = 0, copies: int = 0) -> Cohort:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 3)).astype(np.float32)
    x[:, 2] = np.round(x[:, 2])
    x[generator.random(x.shape) < 0.2] = np.nan
    y = (np.argsort(np.nan_to_num(x[:, 0]) + generator.normal(size=rows)) * classes) // rows
    x[:copies], y[:copies] = x[copies : 2 * copies], y[copies : 2 * copies]
    return Cohort.from_arrays(x, y)


def shuffled(cohort: Cohort, seed: int = 1) -> Cohort:
    return cohort.rows(np.random.default_rng(seed).permutation(len(cohort)))


def difference(memory: CohortMemory, other: CohortMemory) -> float:
    x = np.random.default_rng(2).normal(size=(6, 3)).astype(np.float32)
    x[::2, 1] = np.nan
    answers = [(each.answer(x).prediction, each.answer(x).gain) for each in (memory, other)]
    return max(float(np.abs(a - b).max()) for a, b in zip(*answers, strict=True))


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 10), st.integers(20, 2000), st.integers(0, 1000), st.integers(0, 9))
def test_no_permutation_of_rows_changes_what_is_read(classes, rows, seed, copies):
    cohort = cohort_of(rows, classes, seed, copies)
    first, second = (arranged(each, "content") for each in (cohort, shuffled(cohort, seed)))
    assert np.array_equal(first.x, second.x, equal_nan=True) and np.array_equal(first.y, second.y)
    assert arranged(cohort, "position") is cohort


@pytest.mark.parametrize(("classes", "rows"), [(2, 60), (3, 80)])
def test_no_permutation_of_rows_changes_an_answer(classes, rows):
    cohort, reader = cohort_of(rows, classes, copies=5), model("content")
    memory, other = reader.condition(cohort), reader.condition(shuffled(cohort))
    assert memory.exponent == other.exponent and difference(memory, other) <= TOLERANCE


def test_of_a_long_cohort_the_same_rows_are_kept_however_they_stand():
    cohort = cohort_of(150, 3)
    kept, by_place = (model(order, view_rows=40, against_rest=0.75) for order in ("content", "position"))
    assert difference(kept.condition(cohort), kept.condition(shuffled(cohort))) <= TOLERANCE
    assert difference(by_place.condition(cohort), by_place.condition(shuffled(cohort))) > 1e-3


def test_bootstrap_samples_are_the_same_however_the_rows_stand():
    cohort, reader = cohort_of(60, 2), model("content", views=1)
    samples = [reader.condition(each).resampled(2) for each in (cohort, shuffled(cohort))]
    assert max(map(difference, *samples)) <= TOLERANCE


@pytest.mark.reliability
@pytest.mark.timeout(3600)
def test_rows_shuffled_over_classes_and_lengths(figure):
    reader, worst, count = model("content"), 0.0, 0
    for classes, rows in ((2, 60), (2, 2000), (3, 80), (3, 600), (5, 240), (10, 100)):
        cohort = cohort_of(rows, classes, rows)
        worst = max(worst, difference(reader.condition(cohort), reader.condition(shuffled(cohort))))
        count += 1
    figure(
        "answers: rows of the cohort shuffled, 2 to 10 classes, 60 to 2,000 rows, `row_order: content`",
        "no probability or gain moves by more than 1e-5",
        f"at most {worst:.1g} over {count} cohorts",
        worst <= TOLERANCE,
    )
    assert worst <= TOLERANCE


def test_a_release_without_the_setting_goes_by_position_as_before():
    release = l2m.load(GOLDEN_MODEL).release
    cohort, reader = cohort_of(80, 3), L2M(release)
    assert release.inference.row_order == "position"
    assert difference(reader.condition(cohort), reader.condition(shuffled(cohort))) > 1e-3


def test_rows_that_hold_the_same_are_equal_whatever_holds_it():
    x = np.array([[0.0, np.nan], [-0.0, 1.0], [1.0, 2.0]], dtype=np.float32)
    same = np.array([[-0.0, -np.nan], [0.0, 1.0], [1.0, 2.0]], dtype=np.float32)
    first, second = (Cohort.from_arrays(each, [0, 1, 1], fewest_rows=3) for each in (x, same))
    assert content_order(first).tolist() == content_order(second).tolist()


def test_a_row_order_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="row_order is 'sorted'; it must be one of position, content"):
        model("sorted")

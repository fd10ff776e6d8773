"""The care that all methods share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l2m_core.cohort import Cohort
from l2m_core.methods import Gaussian, make_method
from l2m_core.tabular.preparation import Encoding, folds, prepare, random_acquisitions
from tests.methods.cohorts import BASELINE, LEVELS, learnable

TABLE = learnable("multiclass", rows=90)
CONTEXT = prepare(TABLE)


def test_statistics_use_recorded_values_only():
    """Hidden values are not zeros: means and spreads are those of what was recorded."""
    values = Encoding(CONTEXT).values(CONTEXT.x)
    number = values[CONTEXT.r[:, 1], 1]
    assert abs(number.mean()) < 1e-5
    assert abs(number.std() - 1) < 1e-5


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**-60])
def test_the_unit_of_numbers_does_not_matter(unit):
    number = np.arange(CONTEXT.x.shape[1]) != LEVELS
    scale = np.where(number, np.float32(unit), np.float32(1))
    scaled = Encoding(replace(CONTEXT, x=CONTEXT.x * scale)).values(CONTEXT.x * scale)
    np.testing.assert_allclose(scaled, Encoding(CONTEXT).values(CONTEXT.x), rtol=1e-5, atol=1e-6)


def test_rounding_is_not_taken_for_values():
    x = CONTEXT.x.copy()
    x[:, 1] = np.where(np.arange(len(x)) % 2, 0.1, np.nextafter(np.float32(0.1), np.float32(1)))
    assert np.abs(Encoding(replace(CONTEXT, x=x)).values(x)[:, 1]).max() < 1e-6


def test_a_category_has_a_column_for_each_level_and_none_for_an_unseen_one():
    encoding = Encoding(CONTEXT)
    x = np.zeros((5, 6), dtype=np.float32)
    x[:, LEVELS] = [0, 1, 2, 3, 9]
    columns = encoding.values(x)[:, encoding.owner == LEVELS]
    np.testing.assert_array_equal(columns, np.vstack([np.eye(4), np.zeros((1, 4))]))


def test_an_unseen_level_of_a_pair_is_unknown():
    x = CONTEXT.x.copy()
    x[:, LEVELS] = np.where(np.isnan(x[:, LEVELS]), np.nan, x[:, LEVELS] % 2)
    encoding = Encoding(replace(CONTEXT, x=x))
    query = np.full((2, 6), np.nan, dtype=np.float32)
    query[0, LEVELS] = 2
    np.testing.assert_array_equal(encoding.values(query)[0], encoding.values(query)[1])


def test_what_is_not_known_is_zero_and_its_mask_too():
    a = np.random.default_rng(0).random(CONTEXT.x.shape) < 0.5
    encoding = Encoding(CONTEXT)
    masked = encoding.masked(CONTEXT.x, a)
    known = a & CONTEXT.r
    np.testing.assert_array_equal(masked[:, encoding.width :], known)
    assert (masked[:, : encoding.width][~known[:, encoding.owner]] == 0).all()


@given(st.integers(0, 2**31), st.integers(2, 6))
@settings(max_examples=30)
def test_folds_part_the_rows_and_share_the_classes_evenly(seed, n_folds):
    fold = folds(CONTEXT, n_folds, np.random.default_rng(seed))
    assert set(fold) == set(range(n_folds))
    counts = np.stack([np.bincount(CONTEXT.y[fold == k], minlength=3) for k in range(n_folds)])
    assert (counts.max(0) - counts.min(0) <= 2).all()


@given(st.integers(0, 2**31))
@settings(max_examples=30)
def test_random_acquisitions_take_recorded_cells_and_all_of_the_baseline(seed):
    a = random_acquisitions(CONTEXT.r, CONTEXT.acquirable, CONTEXT.groups, np.random.default_rng(seed))
    assert not (a & ~CONTEXT.r).any()
    np.testing.assert_array_equal(a[:, BASELINE], CONTEXT.r[:, BASELINE])


def test_random_acquisitions_take_every_number_of_cells_equally_often():
    r = np.ones((12_000, 4), dtype=bool)
    a = random_acquisitions(r, np.arange(4) > 0, np.arange(4), np.random.default_rng(0))
    counts = np.bincount(a[:, 1:].sum(1), minlength=4)
    assert (abs(counts - 3000) < 250).all()
    assert (abs(a[:, 1:].mean(0) - 0.5) < 0.02).all()


def test_rows_are_put_in_the_same_order_however_they_come():
    shuffled = prepare(TABLE.rows(np.random.default_rng(0).permutation(90)))
    np.testing.assert_array_equal(shuffled.x, CONTEXT.x)
    np.testing.assert_array_equal(shuffled.y, CONTEXT.y)


def test_a_real_cohort_is_read_like_the_arrays_it_came_from():
    cohort = Cohort.from_arrays(TABLE.x, TABLE.y, acquirable=TABLE.acquirable, categorical=TABLE.categorical)
    a = np.random.default_rng(0).random(TABLE.x.shape) < 0.5
    settings = {"strengths": (0.1,), "n_folds": 2}
    one, two = make_method("logistic", **settings).fit(cohort), make_method("logistic", **settings).fit(TABLE)
    np.testing.assert_allclose(one.predict(cohort.x, a), two.predict(TABLE.x, a), atol=1e-6)


def test_a_gaussian_prediction_is_a_normal_distribution():
    gaussian = Gaussian(np.array([1.0, -2.0]), np.array([2.0, 0.5]))
    grid = np.linspace(-30, 30, 60_001)
    density = np.exp(Gaussian(np.full(grid.size, 1.0), np.full(grid.size, 2.0)).log_prob(grid))
    step = grid[1] - grid[0]
    assert abs(density.sum() * step - 1) < 1e-6
    np.testing.assert_allclose(gaussian.entropy()[0], -(density * np.log(density + 1e-300)).sum() * step, atol=1e-6)
    np.testing.assert_allclose(gaussian.quantile(0.5), gaussian.mean)
    np.testing.assert_allclose(gaussian.quantile(0.975)[0], 1 + 2 * 1.959964, atol=1e-5)

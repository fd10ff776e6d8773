"""Intervals over patients, against samples drawn out in full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l2m_core.evidence.bootstrap import Bootstrap, weighted_auroc, wilson_interval
from l2m_core.metrics import auroc


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(5, 25))
def test_the_weighted_area_is_that_of_rows_repeated_so_often(seed, classes, n):
    draw = np.random.default_rng(seed)
    p = draw.dirichlet(np.ones(classes), n).round(1)  # with ties
    y = draw.integers(0, classes, n)
    weights = draw.integers(0, 3, (4, n)).astype(float)
    for row, found in zip(weights, weighted_auroc(p, y, weights, np.zeros(n)), strict=True):
        rows = np.repeat(np.arange(n), row.astype(int))
        expected = auroc(p[rows], y[rows]) if len(rows) else np.nan
        assert found == pytest.approx(expected, nan_ok=True)


def test_the_area_counts_pairs_within_folds_alone():
    fold = np.repeat([0, 1], 6)
    y = np.array([1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0])
    untold = np.where(fold == 0, 0.3, 0.7)  # what each context has of the class, of patients of whom nothing is known
    p = np.stack([1 - untold, untold], 1)
    assert auroc(p, y) < 0.4
    assert weighted_auroc(p, y, np.ones((1, 12)), fold).tolist() == [0.5]
    told = untold + 0.1 * y
    assert weighted_auroc(np.stack([1 - told, told], 1), y, np.ones((1, 12)), fold).tolist() == [1.0]


def test_patients_are_drawn_with_all_their_rows():
    patient = np.array([0, 0, 1, 2, 2, 2])
    weights = []
    Bootstrap(patient, 50, 0).estimate(lambda w: weights.append(w) or w[:, :1])
    drawn = np.concatenate(weights[1:])
    assert drawn.shape == (50, 6)
    assert (drawn[:, 0] == drawn[:, 1]).all() and (drawn[:, 3] == drawn[:, 5]).all()
    np.testing.assert_array_equal(drawn[:, [0, 2, 3]].sum(1), 3)


def test_the_interval_of_a_mean_is_that_of_resampling_patients():
    draw = np.random.default_rng(1)
    values = draw.normal(size=(80, 1))
    (found,) = Bootstrap(np.arange(80), 4000, 0).mean(values)
    means = [values[draw.integers(0, 80, 80)].mean() for _ in range(4000)]
    assert found.value == pytest.approx(values.mean())
    np.testing.assert_allclose((found.low, found.high), np.quantile(means, [0.025, 0.975]), atol=0.02)


def test_few_patients_with_many_rows_make_the_interval_wider():
    values = np.repeat(np.random.default_rng(2).normal(size=(10, 1)), 20, axis=0)
    (alone,) = Bootstrap(np.arange(200), 1000, 0).mean(values)
    (together,) = Bootstrap(np.repeat(np.arange(10), 20), 1000, 0).mean(values)
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_what_rows_cannot_tell_is_not_a_number():
    found = Bootstrap(np.arange(5), 100, 0).estimate(lambda w: np.full((len(w), 1), np.nan))[0]
    assert np.isnan([found.value, found.low, found.high]).all()


def test_shares_have_wilsons_interval():
    low, high = wilson_interval(np.array([5, 0]), np.array([10, 20]))
    np.testing.assert_allclose((low[0], high[0]), (0.2366, 0.7634), atol=1e-4)
    np.testing.assert_allclose((low[1], high[1]), (0.0, 0.1611), atol=1e-4)

"""A Bayesian regression that averages over what is unknown of a row, and over how much each column counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from l2m_core.cohort import Cohort
from l2m_core.metrics import row_losses
from l2m_core.tabular import bayesian_regression
from l2m_core.tabular.bayesian_regression import BayesianRegression
from l2m_core.tabular.linear import FittedLinear, LinearSettings
from l2m_core.tabular.preparation import Context, prepare
from tests.methods.cohorts import LEVELS, learnable

FEATURES = 8


def drawn(rows: int, seed: int, classes: int = 2, weight: float = 0.5, table: int = 0) -> Context:
    """Every feature counts a little. table: whose weights."""
    weights = np.random.default_rng([7, table]).normal(size=(FEATURES, classes)) * weight
    generator = np.random.default_rng([8, table, seed])
    x = generator.normal(size=(rows, FEATURES)).astype(np.float32)
    score = x @ weights + generator.gumbel(size=(rows, classes))
    names = tuple(f"class {k}" for k in range(classes))
    return prepare(Cohort.from_arrays(x, score.argmax(1), classes=names))


def fitted(context: Context) -> BayesianRegression:
    return BayesianRegression(context, np.random.default_rng(0))


def told(context: Context) -> np.ndarray:
    return np.ones_like(context.x, dtype=bool)


def test_it_is_as_sure_as_it_is_right_and_foresees_more_than_how_often_classes_occur():
    """Of the most likely class: mean probability against how often it happened, over tables, with random parts known."""
    for classes in (2, 3):
        sure, right, saved = [], [], []
        for table in range(12):
            context, new = drawn(60, 0, classes, 0.8, table), drawn(400, 1, classes, 0.8, table)
            generator = np.random.default_rng(table)
            p = fitted(context).predict(new.x, generator.random(new.x.shape) < generator.random((400, 1)))
            sure.append(p.max(1).mean())
            right.append((p.argmax(1) == new.y).mean())
            often = np.bincount(context.y, minlength=classes) / 60
            saved.append(row_losses(np.tile(often, (400, 1)), new.y).mean() - row_losses(p, new.y).mean())
        assert np.mean(sure) == pytest.approx(np.mean(right), abs=0.05)
        assert np.mean(saved) > 0.1


def test_many_features_that_tell_nothing_do_not_mislead_it():
    """Beside a regression that takes each weight as it finds it."""
    generator = np.random.default_rng(1)
    saved = []
    for _ in range(5):
        x, y = generator.normal(size=(460, 30)).astype(np.float32), generator.integers(0, 2, 460)
        context = prepare(Cohort.from_arrays(x[:60], y[:60]))
        a = np.ones((400, 30), dtype=bool)
        chosen = FittedLinear(context, LinearSettings(0.3, 0, False), generator)
        saved.append(
            np.mean(
                row_losses(chosen.predict(x[60:], a), y[60:]) - row_losses(fitted(context).predict(x[60:], a), y[60:])
            )
        )
    assert np.mean(saved) > 0.1


def test_a_square_tells_what_no_straight_line_does():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(600, 3)).astype(np.float32)
    y = (np.abs(x[:, 0]) > 0.7).astype(int)
    context = prepare(Cohort.from_arrays(x[:200], y[:200]))
    p = fitted(context).predict(x[200:], np.ones((400, 3), dtype=bool))
    assert row_losses(p, y[200:]).mean() < 0.35


def test_where_nothing_is_known_it_foresees_how_often_each_class_occurs():
    context = drawn(300, 0, 3)
    p = fitted(context).predict(context.x[:2], np.zeros_like(told(context))[:2])
    assert np.array_equal(p[0], p[1]) and p[0] == pytest.approx(np.bincount(context.y) / 300, abs=0.06)


def test_holes_categories_and_a_class_that_no_row_has_are_read():
    context = prepare(learnable("multiclass", rows=120))
    x = context.x.copy()
    x[:3] = np.nan
    x[3, LEVELS] = 99  # a level that the context lacks
    p = fitted(replace(context, x=x, n_classes=context.n_classes + 1)).predict(x, np.ones_like(x, dtype=bool))
    assert np.allclose(p.sum(1), 1) and (p > 0).all() and p.shape[1] == context.n_classes + 1
    assert p[:, -1].max() < 0.01


def test_of_a_long_cohort_a_part_is_read_the_less_the_more_columns_there_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bayesian_regression, "LEAST_ROWS", 40)
    monkeypatch.setattr(bayesian_regression, "MOST_ROWS", 80)
    assert fitted(drawn(200, 0)).n_rows == 80
    monkeypatch.setattr(bayesian_regression, "MOST_CELLS", 60 * FEATURES**2 * 2)
    assert fitted(drawn(200, 0)).n_rows == 60
    monkeypatch.setattr(bayesian_regression, "MOST_CELLS", 1)
    assert fitted(drawn(200, 0)).n_rows == 40


def test_the_same_rows_give_the_same_numbers():
    context = drawn(100, 0)
    one, other = (fitted(context).predict(context.x, told(context)) for _ in range(2))
    assert np.array_equal(one, other)

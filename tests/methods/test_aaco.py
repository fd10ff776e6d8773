"""AACO compares sets of tests by the loss of a patient's neighbours."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from l2m_core.errors import ConfigError
from l2m_core.methods import make_method
from l2m_core.metrics import row_losses
from tests.methods.cohorts import Table

ONE, OTHER, WEAK, NOISE = range(4)
"""Columns of `together`: two that tell nothing alone and nearly all together, a weak one, noise."""


def together(rows: int = 500, missing: float = 0.0, seed: int = 0) -> Table:
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 4)).astype(np.float32)
    x[:, [ONE, OTHER]] = np.sign(x[:, [ONE, OTHER]])
    score = 3 * x[:, ONE] * x[:, OTHER] + 1.5 * x[:, WEAK]
    y = (score + random.logistic(size=rows) > 0).astype(np.int64)
    x[random.random(x.shape) < missing] = np.nan
    every = np.ones(4, dtype=bool)
    return Table(x, y, "binary", 2, acquirable=every, categorical=~every, costs=np.ones(4, dtype=np.float32))


@pytest.fixture(scope="module")
def method():
    return make_method("aaco", neighbours=60, price=0.12).fit(together())


@pytest.fixture
def patients():
    x = together(rows=60, seed=5).x
    return x, np.zeros(x.shape, dtype=bool)


def test_tests_that_tell_only_together_are_asked_for_before_a_weak_one_that_tells_alone(method, patients):
    x, a = patients
    rank = np.argsort(-method.rank(x, a), axis=1)
    pair = np.isin(rank[:, :2], (ONE, OTHER)).all(1)
    assert pair.mean() > 0.9


def test_where_no_set_is_worth_its_price_tests_go_by_what_they_tell_alone(patients):
    x, a = patients
    dear = make_method("aaco", neighbours=60, price=10.0).fit(together())
    assert (dear.rank(x, a).argmax(1) == WEAK).mean() > 0.9


def test_a_set_with_a_test_that_cannot_be_had_is_not_planned_for(method, patients):
    x, a = patients
    a[:, OTHER] = True
    x[:, OTHER] = np.nan
    assert (method.rank(x, a).argmax(1) == WEAK).mean() > 0.9


def test_holes_in_the_context_leave_the_pair_first(patients):
    x, a = patients
    rank = np.argsort(
        -make_method("aaco", neighbours=60, price=0.12).fit(together(rows=900, missing=0.2)).rank(x, a), axis=1
    )
    assert np.isin(rank[:, :2], (ONE, OTHER)).all(1).mean() > 0.9


def test_the_first_test_is_the_one_that_the_published_definition_asks_for(method, patients):
    """With nothing missing: the set of the lowest mean loss of the neighbours plus α for each test, then its best member."""
    context = method.neighbourhood.context
    x, a = patients
    a[:, NOISE] = True

    def loss(row: int, near: np.ndarray, more: tuple[int, ...]) -> float:
        values, known = np.repeat(x[row, None], len(near), axis=0), np.repeat(a[row, None], len(near), axis=0)
        values[:, more], known[:, more] = context.x[near][:, more], True
        return float(row_losses(method.predict(values, known), context.y[near]).mean())

    found = method.rank(x, a).argmax(1)
    assert len(np.unique(found)) > 1
    sets = [v for size in range(4) for v in combinations((ONE, OTHER, WEAK), size)]
    for row in range(10):
        near = np.argsort(np.abs(context.x[:, NOISE] - x[row, NOISE]), kind="stable")[:60]
        best = min(sets, key=lambda v: loss(row, near, v) + 0.12 * len(v)) or (ONE, OTHER, WEAK)
        assert found[row] == min(best, key=lambda j: loss(row, near, (j,)))


def test_patients_are_ranked_one_by_one_as_together(method, patients, monkeypatch):
    x, a = patients
    a[::2, WEAK] = True
    whole = method.rank(x, a)
    monkeypatch.setattr("l2m_core.methods.aaco.MOST_CELLS", 1)
    np.testing.assert_allclose(method.rank(x, a), whole, atol=1e-5)


def test_nothing_but_the_context_s_rows_decides(method, patients):
    """A row's order is the same whoever is asked about beside it."""
    x, a = patients
    np.testing.assert_allclose(method.rank(x[:1], a[:1]), method.rank(x, a)[:1], atol=1e-5)
    assert method.rank(x[:0], a[:0]).shape == (0, 4)


def test_many_tests_are_compared_by_random_sets():
    context = together()
    noise = np.random.default_rng(3).normal(size=(500, 8)).astype(np.float32)
    every = np.ones(12, dtype=bool)
    wide = replace(context, x=np.hstack([context.x, noise]), acquirable=every, categorical=~every, costs=np.ones(12))
    method = make_method("aaco", sets=30).fit(wide)
    sizes = method.candidates.sum(1)
    assert len(sizes) == 12 + 30 and (sizes[:12] == 1).all() and sizes[12:].min() >= 2 and sizes.max() <= 12


@pytest.mark.parametrize("wrong", [{"neighbours": 0}, {"price": -1.0}, {"sets": 0}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ConfigError, match="at least 1 neighbour"):
        make_method("aaco", **wrong)

"""Costs, bounds and stopping of the value network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from l2m_core.acquire.rollout import Rollout, roll_out_method
from l2m_core.acquire.stopping import Stopping
from l2m_core.methods import make_method
from l2m_core.methods.dime import DIME
from l2m_core.methods.networks import Schedule
from l2m_core.metrics import entropies
from tests.methods.cohorts import STRONG, WEAK, learnable

SHORT = Schedule(epochs=40, plateau=5, patience=15, least_steps=8)
COSTS = np.array([1, 1, 50, 1, 1, 1], dtype=np.float32)


def make(**settings) -> DIME:
    method = make_method("dime", pretraining=SHORT, schedule=SHORT, **settings)
    return method.fit(replace(learnable("binary"), costs=COSTS))


@pytest.fixture(scope="module")
def method() -> DIME:
    return make()


@pytest.fixture
def queries():
    test = learnable("binary", rows=40, missing=0.0, seed=5)
    return test.x, np.broadcast_to(~test.acquirable, test.x.shape).copy()


def test_a_value_is_never_negative_nor_above_the_entropy_left(method, queries):
    x, a = queries
    value = method.value(x, a)
    free = np.isfinite(value)
    assert (value[free] >= 0).all()
    assert (value.max(1) <= entropies(method.predict(x, a)) + 1e-6).all()


def test_a_dear_feature_is_passed_over_when_costs_count(queries):
    x, a = queries
    with_costs = make(per_cost=True)
    assert (with_costs.rank(x, a).argmax(1) == WEAK).mean() > 0.8
    assert (with_costs.value(x, a).argmax(1) == STRONG).mean() > 0.8


def stopped(method, x: np.ndarray, start: np.ndarray | None = None, **rule: float) -> Rollout:
    """Rolled out with that rule for stopping until nothing is left."""
    table = learnable("binary")
    return roll_out_method(
        method,
        x,
        names=list("abcdef"),
        acquirable=table.acquirable,
        costs=COSTS,
        budget=6,
        start=start,
        stopping=Stopping(**rule),
    )


def test_the_budget_counts_the_cost_of_the_next_feature(method, queries):
    x, a = queries
    wants_strong = method.rank(x, a).argmax(1) == STRONG
    assert wants_strong.any()
    assert not stopped(method, x, cost_budget=49).known[:, STRONG].any()
    assert (stopped(method, x, cost_budget=50).actions[wants_strong, 0] == STRONG).all()


def test_it_stops_when_no_value_is_worth_a_test(method, queries):
    x, _ = queries
    assert (stopped(method, x, least_gain=10.0).actions == -1).all()
    assert stopped(method, x, least_gain=0.0).known.all()


def test_it_stops_when_the_prediction_is_sure_enough(method, queries):
    x, a = queries
    entropy = entropies(method.predict(x, a))
    middle = float(np.median(entropy))
    clear = abs(entropy - middle) > 1e-5
    asked = stopped(method, x, most_entropy=middle).actions[:, 0] >= 0
    np.testing.assert_array_equal(asked[clear], (entropy > middle)[clear])


def test_it_stops_when_nothing_is_left(method, queries):
    x, a = queries
    assert (stopped(method, x, np.ones_like(a), cost_budget=1e9).actions == -1).all()

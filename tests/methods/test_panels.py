"""A panel is one action: methods learn from whole panels, and score, draw and pay each as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from l2m_core.acquire.rollout import roll_out_method
from l2m_core.acquire.stopping import Stopping
from l2m_core.methods import make_method
from l2m_core.methods.masked import walk
from l2m_core.tabular.preparation import by_action, prepare, random_acquisitions
from tests.methods.cohorts import BASELINE, Table
from tests.methods.test_methods import HASTY, MINE, QUICK

PANEL, SINGLE = (2, 4, 6, 7, 8, 9), 1
"""Columns of ``panelled``: six that only together tell more than the single one; 3 and 5 are noise."""


def panelled(rows: int = 240, missing: float = 0.1, seed: int = 0) -> Table:
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 10))
    score = x[:, BASELINE] + 2.5 * x[:, SINGLE] + 1.4 * x[:, PANEL].sum(1)
    y = (score + 0.3 * random.logistic(size=rows) > 0).astype(np.int64)
    x[random.random(x.shape) < missing] = np.nan
    none = np.zeros(10, dtype=bool)
    costs = np.where(np.isin(np.arange(10), PANEL), 5, 1).astype(np.float32)
    acquirable = np.arange(10) != BASELINE
    return Table(x.astype(np.float32), y, "binary", 2, acquirable, categorical=none, costs=costs, panels=(PANEL,))


@pytest.fixture
def queries():
    test = panelled(rows=60, missing=0.0, seed=5)
    return test.x, np.broadcast_to(~test.acquirable, test.x.shape).copy()


def test_the_actions_of_a_cohort_are_its_single_features_and_its_panels():
    assert [features.tolist() for features in prepare(panelled()).actions] == [[1], [2, 4, 6, 7, 8, 9], [3], [5]]


def test_an_action_counts_as_marked_with_any_of_its_features():
    marked = by_action(np.arange(10) == np.array([[4], [1]]), panelled().groups)
    assert marked.astype(int).tolist() == [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0]]


def test_random_acquisitions_take_panels_whole_and_every_number_of_actions_equally_often():
    context = prepare(panelled(rows=12_000))
    a = random_acquisitions(context.r, context.acquirable, context.groups, np.random.default_rng(0))
    recorded, taken = context.r[:, PANEL].sum(1), a[:, PANEL].sum(1)
    assert ((taken == 0) | (taken == recorded)).all() and 0 < (taken == 0).mean() < 1
    complete = context.r[:, 1:].all(1)
    counts = np.bincount(by_action(a[complete] & context.acquirable, context.groups).sum(1))
    assert len(counts) == 5 and (abs(counts / complete.sum() - 0.2) < 0.02).all()


def test_a_walk_uncovers_at_each_step_all_that_is_recorded_of_one_action():
    method = make_method("gdfs", **HASTY["gdfs"]).fit(panelled())
    rows = method.encode(prepare(panelled()))
    walks = walk(rows, lambda some, a, open_actions: method.policy(some.inputs(a)), method.steps)
    assert method.steps == 4 and walks.actions.max() < method.n_actions == 5
    new = walks.states[1:] & ~walks.states[:-1]
    expected = rows.r & rows.acquirable & (rows.groups == walks.actions[..., None])
    assert torch.equal(new, expected & walks.moved[..., None])
    assert torch.equal(walks.states[-1], rows.r)


@pytest.mark.parametrize("name", MINE)
def test_every_feature_of_a_panel_has_the_panel_s_score(name, queries):
    x, a = queries
    scores = make_method(name, **HASTY[name]).fit(panelled()).rank(x, a)
    assert np.isneginf(scores[:, BASELINE]).all() and np.isfinite(scores[:, 1:]).all()
    assert (scores[:, PANEL] == scores[:, [PANEL[0]]]).all()
    assert (scores[:, SINGLE] != scores[:, PANEL[0]]).any()
    # What is left of a panel begun keeps its score.
    a[:, PANEL[0]] = True
    begun = make_method(name, **HASTY[name]).fit(panelled()).rank(x, a)
    assert np.isneginf(begun[:, PANEL[0]]).all() and (begun[:, PANEL[1]] == begun[:, PANEL[2]]).all()


# A random order prefers nothing; trees as few as in these tests split on one feature at a time, and know no sum.
@pytest.mark.parametrize("name", [name for name in MINE if name not in ("mlp_random", "boosting_voi")])
def test_a_panel_that_tells_most_as_a_whole_is_asked_for_first(name, queries):
    x, a = queries
    first = make_method(name, **QUICK[name]).fit(panelled()).rank(x, a).argmax(1)
    assert np.isin(first, PANEL).mean() > 0.5
    alone = make_method(name, **QUICK[name]).fit(replace(panelled(), panels=())).rank(x, a).argmax(1)
    assert (alone == SINGLE).mean() > max(0.4, (first == SINGLE).mean())


def test_dime_pays_a_panel_once(queries):
    x, a = queries
    table = panelled()
    method = make_method("dime", per_cost=True, **HASTY["dime"]).fit(table)
    np.testing.assert_allclose(method.rank(x, a)[:, PANEL], method.value(x, a)[:, PANEL] / 5, rtol=1e-5)

    def spent(most: float) -> np.ndarray:
        rolled = roll_out_method(
            method,
            x,
            names=list("abcdefghij"),
            acquirable=table.acquirable,
            groups=table.groups,
            costs=table.costs,
            budget=4,
            stopping=Stopping(cost_budget=most),
        )
        return rolled.cost[:, -1]

    # The panel costs 5, the three single features 1 each.
    assert (spent(8) == 8).all() and (spent(7.9) < 8).all()

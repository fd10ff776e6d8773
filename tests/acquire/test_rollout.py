"""Policies and roll-outs: what is asked for, what never is, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

import l2m_core as l2m
from l2m_core.acquire.policies import NAMED_POLICIES, POLICIES, MonteCarlo, block, gains_of, is_seeded, make_policy
from l2m_core.acquire.rollout import roll_out_method
from l2m_core.acquire.support import count_near, is_thin, nearest_rows, support_of
from l2m_core.errors import ConfigError, FeatureError, InputError
from l2m_core.methods.l2m import BaseRate


@pytest.fixture(scope="module")
def memory():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(150, 6)).astype(np.float32)
    y = (rng.random(150) < 1 / (1 + np.exp(-4 * x[:, 2]))).astype(int)
    x[rng.random(x.shape) < 0.15] = np.nan
    acquirable = np.array([False, True, True, True, True, True])
    cohort = l2m.Cohort.from_arrays(
        x, y, acquirable=acquirable, groups=[None, None, None, "panel", "panel", None], costs=[0, 1, 2, 3, 4, 0]
    )
    return l2m.load().condition(cohort)


@pytest.fixture(scope="module")
def rows(memory):
    return memory.cohort.x[:40], memory.cohort.y[:40]


@pytest.mark.parametrize("policy", NAMED_POLICIES)
def test_nothing_is_asked_for_that_cannot_be_had_or_is_known(memory, rows, policy):
    x, y = rows
    rolled = memory.acquire(x, budget=6, policy=policy, y=y)
    for i, actions in enumerate(rolled.actions):
        asked = actions[actions >= 0]
        assert len(set(asked)) == len(asked)
        assert memory.cohort.acquirable[asked].all()
        assert not np.isnan(x[i, asked]).any()
    assert not (rolled.known & np.isnan(x)).any()
    assert rolled.losses.shape == (40, 7)
    assert len(rolled.predictions) == 7


def test_the_informative_feature_is_asked_for_first(memory, rows):
    x, _ = rows
    had = ~np.isnan(x[:, 2])
    first = memory.acquire(x, budget=1, policy="monte carlo").actions[:, 0]
    assert (first[had] == 2).mean() > 0.8


def test_a_panel_comes_whole_and_is_paid_once(memory):
    x = np.zeros((1, 6), dtype=np.float32)
    rolled = memory.acquire(x, budget=5, policy=make_policy("fixed", order=("x3",)))
    assert rolled.known[0, [3, 4]].all()
    assert rolled.cost[0, 1] == 4.0
    assert (rolled.actions[0] >= 0).sum() == 4  # five features, two of them one action


def test_a_budget_in_tests_among_the_rules_is_kept(memory, rows):
    rolled = memory.acquire(rows[0], budget=3, stopping=l2m.Stopping(budget=1))
    assert ((rolled.actions >= 0).sum(1) == 1).all() and len(rolled.predictions) == 4
    longer = memory.acquire(rows[0], budget=1, stopping=l2m.Stopping(budget=3))
    assert ((longer.actions >= 0).sum(1) == 1).all()
    none = memory.acquire(rows[0], budget=3, stopping=l2m.Stopping(budget=0))
    assert (none.actions == -1).all() and not none.cost.any()


def test_budgets_by_cost_are_never_overspent(memory, rows):
    rolled = memory.acquire(rows[0], budget=6, policy="random", stopping=l2m.Stopping(cost_budget=4.0))
    assert rolled.cost.max() <= 4.0


def test_a_gain_threshold_stops_early(memory, rows):
    none = memory.acquire(rows[0], budget=3, stopping=l2m.Stopping(least_gain=9.0))
    assert (none.actions == -1).all()


def test_the_table_has_one_row_for_each_action(memory, rows):
    rolled = memory.acquire(rows[0], budget=2)
    assert len(rolled.frame()) == (rolled.actions >= 0).sum()
    with pytest.raises(ValueError, match="without outcomes"):
        rolled.mean_loss  # noqa: B018


def test_random_order_is_seeded(memory, rows):
    first = memory.acquire(rows[0], budget=3, policy="random", seed=4).actions
    assert (first == memory.acquire(rows[0], budget=3, policy="random", seed=4).actions).all()
    assert (first != memory.acquire(rows[0], budget=3, policy="random", seed=5).actions).any()


def test_unknown_policies_and_orders_are_refused_by_name(memory, rows):
    with pytest.raises(ConfigError, match="greedy"):
        memory.acquire(rows[0], policy="greedy")
    with pytest.raises(ConfigError, match="temperature"):
        make_policy("gain", temperature=2)
    with pytest.raises(FeatureError, match="x9"):
        memory.acquire(rows[0], policy=make_policy("fixed", order=("x9",)))


@pytest.mark.parametrize(
    "y",
    [[0, 1, -1], [0, 1, 2], [0.0, 0.5, 1.0], ["yes", "no", "no"], [0, 1, np.nan], [1], [[0, 1, 1]], 1],
    ids=repr,
)
def test_outcomes_that_are_no_codes_of_classes_are_refused(memory, rows, y):
    with pytest.raises(
        InputError, match="must hold (codes of the classes, 0 to 1, as `cohort.encode_outcome|one outcome for)"
    ):
        memory.acquire(rows[0][:3], budget=1, y=y)


def test_outcomes_of_any_type_of_number_give_the_same_losses(memory, rows):
    codes = np.array([0, 1, 1])
    found = [
        memory.acquire(rows[0][:3], budget=2, y=y).losses for y in (codes, codes.tolist(), codes * 1.0, codes == 1)
    ]
    assert all((losses == found[0]).all() for losses in found) and found[0].shape == (3, 3)


@pytest.mark.parametrize("change", [np.int64, float], ids=["whole", "float"])
def test_what_is_known_at_first_is_told_by_truth_values(memory, rows, change):
    x = rows[0][:3]
    start = np.zeros(x.shape, dtype=bool)
    start[:, 0] = True
    assert (memory.acquire(x, budget=2, start=start).actions != 0).all()
    for wrong in (start.astype(change), start[:1], start[:, :1]):
        with pytest.raises(InputError, match="start has the shape .* truth values"):
            memory.acquire(x, budget=2, start=wrong)


def test_a_name_is_enough_for_the_policies_that_are_ready_and_for_no_other():
    assert all(make_policy(name) for name in NAMED_POLICIES)
    for name in set(POLICIES) - set(NAMED_POLICIES):
        with pytest.raises(ConfigError, match=name):
            make_policy(name)


def test_a_policy_says_itself_whether_its_scores_are_nats_and_whether_it_takes_a_seed(memory):
    x = np.full((1, 6), np.nan, dtype=np.float32)
    answer = memory.answer(x)
    assert {name for name in POLICIES if POLICIES[name].in_nats} == {"gain", "gain head", "monte carlo"}
    for name in NAMED_POLICIES:
        policy = make_policy(name)
        scores = policy.scores(memory, x, answer)
        gains = gains_of(policy, scores, answer)
        assert np.array_equal(gains, scores if policy.in_nats else answer.gain)
    assert [name for name in POLICIES if is_seeded(name)] == ["random", "monte carlo"]
    assert is_seeded("monte_carlo") and not is_seeded("greedy")


def test_support_is_counted_in_all_rows_and_in_the_nearest_quarter(memory):
    near = count_near(len(memory.cohort))
    assert near == 37 and count_near(12) == 10
    x = memory.cohort.x[:1]
    overall, close = support_of(memory, x)
    assert overall.tolist() == memory.cohort.r.sum(0).tolist()
    assert close.tolist() == memory.cohort.r[nearest_rows(memory, x, near)[0]].sum(0).tolist()
    assert is_thin(29, 20) and is_thin(100, 9) and not is_thin(30, 10)


def test_blocking_leaves_only_what_may_be_asked(memory):
    x = np.array([[np.nan, 1.0, np.nan]])
    scores = block(np.ones((1, 3)), x, np.array([True, True, True]), np.array([[True, True, False]]))
    assert scores.tolist() == [[1.0, -np.inf, -np.inf]]


def test_the_nearest_row_to_a_cohort_row_is_itself(memory):
    complete = np.flatnonzero(memory.cohort.r.all(1))[:10]
    assert (nearest_rows(memory, memory.cohort.x[complete], 1)[:, 0] == complete).all()


def test_monte_carlo_gains_are_about_the_drop_in_entropy(memory):
    x = np.full((1, 6), np.nan, dtype=np.float32)
    scores = MonteCarlo(draws=24).scores(memory, x, memory.answer(x))[0]
    assert scores[2] == max(scores[1:])
    assert scores[0] == -np.inf  # a baseline feature is no candidate


@pytest.mark.parametrize("policy", [name for name in POLICIES if is_seeded(name)])
def test_draws_are_a_patients_own_wherever_a_table_is_cut(memory, policy):
    x = memory.cohort.x[:5].copy()
    x[::2, 2:] = np.nan  # who is asked about differs from feature to feature
    x[1, 3:] = np.nan
    whole = make_policy(policy).scores(memory, x, memory.answer(x))
    rest = make_policy(policy, first=2).scores(memory, x[2:], memory.answer(x[2:]))
    assert np.allclose(whole[2:], rest, atol=1e-5)


class Oracle:
    """A method that knows the order; any object with predict and rank can be rolled out."""

    def predict(self, x, a):
        sure = a[:, 0] & a[:, 1]
        return np.where(sure[:, None], [0.1, 0.9], [0.5, 0.5])

    def rank(self, x, a):
        return np.tile(np.arange(x.shape[1], 0, -1.0), (len(x), 1))


def test_an_action_is_named_by_the_feature_it_was_taken_for():
    """Of a panel of three: the best-scored one that the patient has; all that he has of it becomes known."""
    x = np.array([[1, 1, 1], [np.nan, 1, 1]], dtype=np.float32)
    rolled = roll_out_method(
        Oracle(), x, names=list("abc"), acquirable=np.ones(3, bool), groups=np.zeros(3, int), budget=1
    )
    assert rolled.actions.tolist() == [[0], [1]] and rolled.frame()["feature"].tolist() == ["a", "b"]
    assert (rolled.known == ~np.isnan(x)).all()


def test_any_method_with_predict_and_rank_can_be_rolled_out():
    x = np.ones((3, 4), dtype=np.float32)
    rolled = roll_out_method(
        Oracle(), x, names=list("abcd"), acquirable=np.ones(4, bool), budget=2, y=np.ones(3, dtype=int)
    )
    assert rolled.actions.tolist() == [[0, 1]] * 3
    np.testing.assert_allclose(rolled.losses[0], -np.log([0.5, 0.5, 0.9]))


def test_who_has_nothing_left_to_measure_is_asked_about_no_more():
    asked = []

    class Counting:
        def predict(self, x, a):
            asked.append(a.sum())
            return np.full((len(x), 2), 0.5)

        def rank(self, x, a):
            return np.zeros(x.shape)

    x = np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]], dtype=np.float32)
    found = roll_out_method(Counting(), x, names=("a", "b", "c"), acquirable=np.array([False, True, True]), budget=6)
    assert asked == [2, 4, 5]  # at the start, after one test each, and after the second that one of them has
    assert len(found.predictions) == 7 and found.cost[:, -1].tolist() == [2.0, 1.0]
    assert len(roll_out_method(Counting(), x[:0], names=("a", "b", "c"), acquirable=np.ones(3, bool)).predictions) == 9


@pytest.mark.parametrize("policy", ["gain per cost", "learned", "random"])
def test_a_gain_threshold_is_in_nats_whatever_the_policy_scores_by(memory, rows, policy):
    """Even a policy that takes features in its own order stops when the best that is left promises too little."""
    x, _ = rows
    rolled = memory.acquire(x, budget=6, policy=policy, stopping=l2m.Stopping(least_gain=0.03))
    shown = np.where(rolled.known, x, np.nan).astype(np.float32)
    left = block(memory.answer(shown).gain, shown, memory.cohort.acquirable, ~np.isnan(x))
    taken = (rolled.actions >= 0).sum(1)
    assert (left.max(1) < 0.03).all() and 0 < taken.mean() < 5


@pytest.mark.parametrize("rule", [{"confidence": 0.9}, {"most_entropy": 0.3}])
def test_whoever_is_sure_enough_is_asked_no_more(memory, rows, rule):
    stopping = l2m.Stopping(**rule)
    rolled = memory.acquire(rows[0], budget=6, stopping=stopping)
    nothing = np.zeros(len(rows[0]))
    for step in range(6):
        sure = stopping.reached(rolled.predictions[step], np.ones(len(nothing)), nothing, nothing)
        assert (rolled.actions[sure, step:] == -1).all()
    finished = stopping.reached(rolled.predictions[-1], np.ones(len(nothing)), nothing, nothing)
    assert finished.any() and (rolled.actions[finished] == -1).any()


@pytest.mark.parametrize(
    ("rule", "taken"), [({"confidence": 0.9}, 2), ({"most_entropy": 0.1}, 2), ({"most_entropy": 5.0}, 0)]
)
def test_rules_hold_for_a_method_of_its_own_with_a_continuous_outcome(rule, taken):
    """It has no class to be sure of; its entropy is that of a standard normal, 1.42 nats, whatever is known."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=50)
    cohort = l2m.Cohort.from_arrays(rng.normal(size=(50, 3)), (y - y.mean()) / y.std(), kind="continuous")
    rolled = roll_out_method(
        BaseRate().fit(cohort),
        cohort.x,
        names=cohort.names,
        acquirable=cohort.acquirable,
        budget=2,
        y=cohort.y,
        stopping=l2m.Stopping(**rule),
    )
    assert ((rolled.actions >= 0).sum(1) == taken).all() and np.isfinite(rolled.losses).all()


@pytest.mark.parametrize("budget", [-1, 1.5, "3", None, True])
def test_a_budget_that_is_no_number_of_actions_is_refused(memory, rows, budget):
    with pytest.raises(ConfigError, match="budget is .*whole number"):
        memory.acquire(rows[0], budget=budget)


def test_a_roll_out_is_printed_as_its_size_and_its_loss(memory, rows):
    x, y = rows
    rolled = memory.acquire(x, budget=2, y=y)
    assert repr(rolled) == f"Rollout({len(x)} rows, 2 steps, mean log loss {rolled.mean_loss:.3g})"
    assert repr(memory.acquire(x, budget=2)) == f"Rollout({len(x)} rows, 2 steps)"

"""The rules for stopping are the same for one patient, in words, as for many rows at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import l2m_core as l2m
from l2m_core.errors import ConfigError

PREDICTION = np.array([[0.95, 0.05], [0.6, 0.4], [0.5, 0.5]])
GAIN, TAKEN, SPENT = np.array([0.2, 0.004, -np.inf]), np.array([1, 4, 2]), np.array([3.0, 9.0, 10.0])

RULES = [
    ({}, [None, None, "No test is left"]),
    ({"budget": 4}, [None, "The budget of 4 tests is used", "No test is left"]),
    ({"cost_budget": 9.5}, [None, None, "The cost budget of 9.5 is used (10 spent)"]),
    ({"least_gain": 0.01}, [None, "The best test left promises 0.004 nats", "No test is left"]),
    ({"confidence": 0.9}, ["The likeliest outcome has reached 95.0%", None, "No test is left"]),
    (
        {"confidence": 0.925},
        ["The likeliest outcome has reached 95.0%, at least the 92.5% asked for", None, "No test is left"],
    ),
    ({"most_entropy": 0.3}, ["What is left to know (0.199 nats)", None, "No test is left"]),
    ({"budget": 1, "confidence": 0.9}, ["The budget of 1 test is"] * 3),
]


@pytest.mark.parametrize(
    ("spread", "words"), [(20_000.0, "200 EUR."), (1_540_000.0, "15,000 EUR."), (3.2, "0.032 EUR.")]
)
def test_a_point_of_a_large_outcome_is_no_power_of_ten(spread: float, words: str) -> None:
    prediction = SimpleNamespace(distribution=SimpleNamespace(scale=spread))
    still = [SimpleNamespace(movement=0.0)]
    said = l2m.Stopping(least_points=1).reason(prediction, 0.1, 0, 0.0, still, "EUR")  # type: ignore[arg-type]
    assert said == f"Nothing left is likely to move this by more than {words}"


@pytest.mark.parametrize(("rules", "words"), RULES)
def test_the_reason_for_one_patient_is_given_exactly_where_the_rules_hold_for_the_row(rules, words) -> None:
    stopping = l2m.Stopping(**rules)
    reasons = [stopping.reason(PREDICTION[i : i + 1], float(GAIN[i]), int(TAKEN[i]), float(SPENT[i])) for i in range(3)]
    assert [reason and reason.startswith(start) for reason, start in zip(reasons, words, strict=True)] == [
        start and True for start in words
    ]
    reached = stopping.reached(PREDICTION, GAIN, TAKEN, SPENT)
    assert reached.tolist() == [reason is not None for reason in reasons]


def test_gains_near_nothing_are_no_powers_of_ten() -> None:
    reason = l2m.Stopping(least_gain=0.00005).reason(PREDICTION[:1], 0.0000312, 1, 3.0)
    assert reason == "The best test left promises 0.000031 nats, less than the threshold of 0.00005."


@pytest.mark.parametrize(("threshold", "said"), [(0.025, "2.5%"), (0.004, "0.4%"), (0.07, "7%")])
def test_a_threshold_is_said_as_it_was_set(threshold: float, said: str) -> None:
    outlook = SimpleNamespace(crossing=lambda threshold: 0.0, movement=0.0)
    reason = l2m.Stopping(threshold=threshold).reason(PREDICTION[:1], 0.2, 1, 3.0, [outlook])
    assert reason == f"Nothing left is likely to carry this across {said}: the chance is below 1%."


def test_what_is_left_of_the_cost_budget_and_what_it_pays_for() -> None:
    stopping = l2m.Stopping(cost_budget=10.0)
    assert [stopping.cost_left(spent) for spent in (0.0, 4.0, 12.0)] == [10.0, 6.0, 0.0]
    costs = np.array([0.0, 6.0, 7.0])
    assert stopping.affordable(np.array([0.0, 4.0]), costs).tolist() == [[True] * 3, [True, True, False]]
    assert l2m.Stopping().cost_left(1e9) == float("inf")
    assert l2m.Stopping().affordable(np.array([1e9]), costs).all()


@pytest.mark.parametrize(
    ("budget", "spent", "cost"),
    [(12.3, 0.0, float(np.float32(12.3))), (0.3, 0.2, 0.1), (100.1, 66.7, float(np.float32(33.4)))],
)
def test_a_cost_budget_pays_for_what_costs_just_as_much_in_decimals(budget: float, spent: float, cost: float) -> None:
    stopping = l2m.Stopping(cost_budget=budget)
    assert stopping.pays_for(cost, spent) and not stopping.pays_for(cost + 0.01, spent)
    assert stopping.reason(PREDICTION[:1], 0.2, 1, 0.7 * budget + 0.3 * budget - 1e-15) is not None


def test_a_patient_can_be_advised_by_other_rules_than_its_own(model_memory) -> None:
    patient = model_memory.start({"x0": 0.5}, stopping=l2m.Stopping(budget=5))
    assert patient.advice is None
    assert patient.advice_by(l2m.Stopping(budget=0)) == "The budget of 0 tests is used."


@pytest.fixture(scope="module")
def model_memory():
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    return l2m.load().condition(l2m.Cohort.from_arrays(x, (x[:, 1] > 0).astype(int)))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"budget": "3"}, "budget is '3'; it must be a number"),
        ({"budget": True}, "budget is True; it must be a number"),
        ({"budget": 1.5}, "budget is 1.5; it must be a whole number of actions"),
        ({"threshold": "high"}, "threshold is 'high'; it must be a number"),
    ],
)
def test_a_rule_that_is_no_number_is_refused(rules, words):
    with pytest.raises(ConfigError, match=words):
        l2m.Stopping(**rules)

"""What is said of a continuous outcome stays within what it can be."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import l2m_core as l2m
from l2m_core.answering.predictive import Predictive, reach_of
from l2m_core.errors import InputError
from l2m_core.memory import CohortMemory
from l2m_core.model.density import Gaussian
from l2m_core.step_through.patient import Patient

ROWS = 120


@pytest.fixture(scope="module")
def stays() -> CohortMemory:
    """Days in hospital, of which many are short and some are long; a tells how long."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(ROWS, 2)).astype(np.float32)
    days = np.exp(0.5 + 0.8 * x[:, 0] + 0.9 * draw.normal(size=ROWS)).round(1).astype(np.float32)
    return l2m.load().condition(l2m.Cohort.from_arrays(x, days, names=["a", "b"], kind="continuous", outcome="days"))


def patient_with_a_short_stay(memory: CohortMemory) -> Patient:
    return memory.start({"a": -2.5, "b": 0.0})


@pytest.mark.parametrize(
    ("recorded", "reach"),
    [
        (np.linspace(0.3, 9, 50), (0, np.inf)),
        (np.linspace(-9, 0, 50), (-np.inf, 0)),
        (np.linspace(-3, 9, 50), (-np.inf, np.inf)),
        (np.minimum(np.arange(50), 30), (0, 30)),  # a score with a ceiling
        (np.array([1, 1, 1, 2, 4, 7, 9, 12]), (1, np.inf)),  # whole days, of which the first counts as one
    ],
)
def test_an_outcome_keeps_its_sign_and_ends_where_several_patients_do(recorded: np.ndarray, reach: tuple) -> None:
    assert reach_of(recorded) == reach


def test_no_stay_is_shorter_than_nothing_wherever_it_is_told(stays: CohortMemory) -> None:
    patient = patient_with_a_short_stay(stays)
    posterior = patient.posterior
    assert isinstance(posterior, Predictive)
    own = posterior.distribution.quantile(0.05)[0]
    assert float(own[0]) < 0, "this patient's distribution reaches below 0, else nothing is tried here"
    assert posterior.quantile(0.05)[0] == stays.predict(patient.x).quantile(0.05)[0] == 0
    assert patient.trace.steps[0].posterior["5% quantile"] == 0
    assert l2m.Trace.from_json(patient.trace.to_json()).replay(stays).known == patient.known


def test_a_trace_that_was_made_before_replays_as_it_was(stays: CohortMemory) -> None:
    patient = patient_with_a_short_stay(stays)
    posterior = patient.posterior
    assert isinstance(posterior, Predictive)
    plain = json.loads(patient.trace.to_json())
    plain["steps"][0]["posterior"]["5% quantile"] = float(posterior.distribution.quantile(0.05)[0, 0])
    earlier = l2m.Trace.from_json(json.dumps(plain))
    assert earlier.replay(stays).known == patient.known and earlier.differences(stays) == (0.0,)
    plain["steps"][0]["posterior"]["95% quantile"] += 1
    assert l2m.Trace.from_json(json.dumps(plain)).differences(stays) == pytest.approx((1.0,))


def test_chances_of_ranges_add_up_and_what_lies_beyond_counts_to_the_end() -> None:
    normal = Gaussian(torch.zeros(1, 2, 2), torch.full((1, 1), 1.0), torch.full((1, 1), 2.0))
    whole, within = Predictive(normal), Predictive(normal, (0.0, np.inf))
    edges = [0.0, 1.0, 3.0, np.inf]
    assert whole.chances([-np.inf, *edges]).sum(1) == pytest.approx([1, 1])
    assert within.chances(edges).sum(1) == pytest.approx([1, 1])
    assert within.chances(edges)[0, 0] == pytest.approx(0.5)  # all below the mean, which is 1
    assert within.chances(edges)[0, 1:] == pytest.approx(whole.chances(edges)[0, 1:])
    assert within.row(1).reach == within.reach


def test_several_quantiles_are_asked_at_once(stays: CohortMemory) -> None:
    posterior = stays.predict([{"a": -2.5}, {"a": 0.3}, {"a": 2.0, "b": 1.0}])
    levels = [0.05, 0.5, 0.9]
    each = np.stack([posterior.quantile(level) for level in levels], 1)
    assert posterior.quantile(0.5).shape == (3,)
    for given in (levels, tuple(levels), np.array(levels)):
        assert np.array_equal(posterior.quantile(given), each)
    assert posterior.quantile([]).shape == (3, 0)


def test_what_a_distribution_cannot_be_asked_is_refused_in_words(stays: CohortMemory) -> None:
    posterior = stays.predict([{"a": -2.5}, {"a": 0.3}, {"a": 2.0}])
    for levels in (1, [0.1, 1.5], np.nan, [[0.1], [0.9]]):
        with pytest.raises(InputError, match="strictly between 0 and 1"):
            posterior.quantile(levels)
    for none in (None, "half"):
        with pytest.raises(InputError, match="p is|strictly between"):
            posterior.quantile(none)
    for edges in ([5.0, 1.0], [1.0, np.nan], 3.0):
        with pytest.raises(InputError, match="ascending order"):
            posterior.chances(edges)
    with pytest.raises(InputError, match="list of outcomes"):
        posterior.pdf(3.0)


def test_a_log_density_is_of_one_outcome_for_each_row(stays: CohortMemory) -> None:
    posterior = stays.predict([{"a": -2.5}, {"a": 0.3}, {"a": 2.0}])
    assert posterior.log_prob([1.0, 2.0, 3.0])[2] == pytest.approx(np.log(posterior.row(2).pdf([3.0])[0, 0]), abs=1e-5)
    for y in ([1.0, 2.0], 3.0, [1.0] * 4):
        with pytest.raises(InputError, match="one outcome for each of 3 rows"):
            posterior.log_prob(y)


def test_a_row_is_counted_from_either_end_and_none_is_made_up(stays: CohortMemory) -> None:
    posterior = stays.predict([{"a": -2.5}, {"a": 0.3}, {"a": 2.0}])
    assert posterior.row(-1).mean == posterior.row(2).mean == posterior.mean[2:]
    with pytest.raises(InputError, match="no row 3"):
        posterior.row(3)


def test_a_belief_is_printed_as_its_mean_and_the_range_that_it_expects() -> None:
    one = Predictive(Gaussian(torch.tensor([[[0.0, 0.0]]]), torch.tensor([[20_000.0]]), torch.tensor([[1_000.0]])))
    assert repr(one).startswith("Predictive(mean 20000, with 90% between 18")
    many = Predictive(Gaussian(torch.zeros(1, 7, 2), torch.tensor([[0.0]]), torch.tensor([[1.0]])))
    assert repr(many) == "Predictive(of 7 rows)"

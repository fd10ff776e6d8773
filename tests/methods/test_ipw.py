"""Weighted estimates of a policy's loss and gradient, on a case whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from l2m_core.errors import ConfigError
from l2m_core.methods import make_method
from l2m_core.methods.ipw import LogisticPropensities, offline_ipw, semi_offline_ipw
from l2m_core.methods.trajectories import gradient, on_policy, reinforce, simulate
from l2m_core.metrics import row_losses
from tests.methods.cohorts import Table, learnable

N = 20_000
ACQUIRABLE = torch.tensor([False, True, True, True])
WORTH = torch.tensor([0.5, 2.0, 1.0, 0.2])
"""y is the sum of the features times these; the first feature is the baseline one."""


class SoftPolicy(nn.Module):
    """Logits that depend on the baseline feature and on what is known."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[0.0, 0.5, -0.5, 0.2], [0.0, 0.8, -0.3, 0.1]]))

    def forward(self, x: Tensor, a: Tensor) -> Tensor:
        return self.weight[0] * x[:, :1] + self.weight[1] + 0.3 * x.sum(-1, keepdim=True) * torch.arange(4)


def squared_error(x: Tensor, a: Tensor, y: Tensor) -> Tensor:
    return (y - x @ WORTH) ** 2


def chance_of_recording(x: Tensor, a: Tensor) -> Tensor:
    """Missing at random: the baseline feature decides how likely each other feature is recorded."""
    slope = torch.tensor([0.0, 1.0, -1.0, 0.5])
    chance = torch.sigmoid(0.4 + slope * x[:, :1])
    chance[:, 0] = 1
    return chance


@pytest.fixture(scope="module")
def complete() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((N, 4), generator=generator)
    # The outcome is noisier where the baseline feature is large, so that who is recorded matters to the loss.
    y = x @ WORTH + torch.randn(N, generator=generator) * (0.5 + x[:, 0].clamp(min=0))
    return x, y


@pytest.fixture(scope="module")
def recorded(complete) -> tuple[Tensor, Tensor]:
    x, y = complete
    generator = torch.Generator().manual_seed(1)
    missing = torch.rand(x.shape, generator=generator) >= chance_of_recording(x, x.bool())
    return x.masked_fill(missing, torch.nan), y


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(2)


def run(name: str, policy, recorded, steps: int = 2, propensity=chance_of_recording):
    weighting = {"offline": offline_ipw, "semi-offline": semi_offline_ipw}[name]
    return simulate(policy, squared_error, *recorded, ACQUIRABLE, steps, generator(), weighting(propensity))


@pytest.mark.parametrize("name", ["offline", "semi-offline"])
def test_the_loss_of_a_policy_is_estimated_without_bias(name, complete, recorded):
    truth = reinforce(SoftPolicy(), squared_error, *complete, ACQUIRABLE, 2, generator()).values()
    estimate = run(name, SoftPolicy(), recorded)
    error = (estimate.weights * estimate.losses).std(1) / N**0.5
    assert ((estimate.values() - truth).abs() < 4 * error + 0.02).all()


def test_following_the_blocked_policy_without_weights_is_biased(complete, recorded):
    truth = reinforce(SoftPolicy(), squared_error, *complete, ACQUIRABLE, 2, generator()).values()
    blocked = run("semi-offline", SoftPolicy(), recorded)
    served = blocked.weights[-1] > 0
    naive = blocked.losses[-1][served]
    assert (naive.mean() - truth[-1]).abs() > 6 * naive.std() / len(naive) ** 0.5


@pytest.mark.parametrize("name", ["offline", "semi-offline"])
def test_weights_average_to_one(name, recorded):
    weights = run(name, SoftPolicy(), recorded).weights
    assert (weights.mean(1) - 1).abs().max() < 0.05


def test_semi_offline_weights_vary_less(recorded):
    spread = {name: run(name, SoftPolicy(), recorded).weights[-1].std() for name in ("offline", "semi-offline")}
    assert spread["semi-offline"] < 0.9 * spread["offline"]


def test_for_a_policy_without_randomness_the_two_coincide(recorded):
    def certain(x: Tensor, a: Tensor) -> Tensor:
        order = torch.tensor([0.0, 3.0, 2.0, 1.0]).masked_fill(a, -torch.inf)
        return torch.zeros_like(order).masked_fill(order < order.max(-1, keepdim=True).values, -torch.inf)

    one, two = run("offline", certain, recorded), run("semi-offline", certain, recorded)
    torch.testing.assert_close(one.weights, two.weights)
    torch.testing.assert_close(one.values(), two.values())


def test_the_reference_gradient_is_the_exact_one(complete):
    x, y = complete
    policy = SoftPolicy()
    start = torch.zeros((N, 4), dtype=torch.bool)
    start[:, 0] = True
    # One step: J = mean over rows of Σ_j π_j ℓ_j.
    losses = torch.stack([squared_error(x * (start | (torch.arange(4) == j)), start, y) for j in range(4)], 1)
    probability = policy(x * start, start).masked_fill(~ACQUIRABLE, -torch.inf).softmax(-1)
    exact = torch.autograd.grad((probability * losses).sum(1).mean(), policy.weight)[0].flatten()
    estimate = gradient([policy.weight], reinforce(policy, squared_error, x, y, ACQUIRABLE, 1, generator(), repeats=4))
    assert (estimate - exact).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize("name", ["offline", "semi-offline"])
def test_the_weighted_gradient_points_where_the_reference_does(name, complete, recorded):
    policy = SoftPolicy()
    trajectories = reinforce(policy, squared_error, *complete, ACQUIRABLE, 2, generator(), repeats=4)
    reference = gradient([policy.weight], trajectories)
    estimate = gradient([policy.weight], run(name, policy, recorded))
    assert torch.cosine_similarity(estimate, reference, dim=0) > 0.97
    assert 0.8 < estimate.norm() / reference.norm() < 1.25


def test_logistic_propensities_recover_the_chances(recorded):
    x, y = recorded[0][:4000], recorded[1][:4000]
    learned = LogisticPropensities(most_known=2, draws=5).fit(as_table(x, y))
    a = torch.zeros(x.shape, dtype=torch.bool)
    a[:, 0] = True
    difference = (learned(torch.nan_to_num(x) * a, a) - chance_of_recording(x, a))[:, 1:].abs()
    assert difference.mean() < 0.03


def test_logistic_propensities_follow_what_was_seen_along_the_way():
    """The third feature is recorded only where the second is, and more often where that is high."""
    random = np.random.default_rng(0)
    x = random.normal(size=(3000, 3))
    missing = np.zeros(x.shape, dtype=bool)
    missing[:, 1] = random.random(3000) < 0.4
    chance = np.where(missing[:, 1], 0, 1 / (1 + np.exp(-2 * x[:, 1])))
    missing[:, 2] = random.random(3000) >= chance
    table = as_table(torch.tensor(x).masked_fill(torch.tensor(missing), torch.nan), torch.tensor(x[:, 0]))
    learned = LogisticPropensities(draws=5).fit(table)
    asked = torch.tensor([[0.0, 2.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 0.0]])
    a = torch.tensor([[True, True, False], [True, True, False], [True, False, False]])
    high, low, unseen = learned(asked, a)[:, 2].tolist()
    assert high > 0.9 and low < 0.1
    assert unseen == pytest.approx(0.3, abs=0.05)


def test_estimated_propensities_give_the_loss_as_well(complete, recorded):
    truth = reinforce(SoftPolicy(), squared_error, *complete, ACQUIRABLE, 2, generator()).values()
    learned = LogisticPropensities(most_known=2, draws=3).fit(as_table(recorded[0][:4000], recorded[1][:4000]))
    for name in ("offline", "semi-offline"):
        estimate = run(name, SoftPolicy(), recorded, propensity=learned).values(normalised=True)
        assert (estimate - truth).abs().max() < 0.05 * truth.max()


def test_a_fitted_method_can_be_valued():
    table = learnable("binary", missing=0.3)
    method = make_method("logistic", strengths=(0.1,), variants=((0, False),)).fit(table)
    test = learnable("binary", rows=400, missing=0.3, seed=3)
    x, y = torch.from_numpy(test.x), torch.from_numpy(test.y)
    propensity = LogisticPropensities(draws=3).fit(test)
    acquirable = torch.from_numpy(test.acquirable)

    def best(x: Tensor, a: Tensor) -> Tensor:
        scores = torch.from_numpy(method.rank(x.numpy(), a.numpy()))
        return torch.zeros_like(scores).masked_fill(scores < scores.max(-1, keepdim=True).values, -torch.inf)

    def loss(x: Tensor, a: Tensor, y: Tensor) -> Tensor:
        return torch.from_numpy(row_losses(method.predict(x.numpy(), a.numpy()), y.numpy())).float()

    trajectories = simulate(best, loss, x, y, acquirable, 2, generator(), offline_ipw(propensity))
    values = trajectories.values(normalised=True)
    assert values[2] < values[0] - 0.1


def test_the_reference_refuses_rows_with_holes(recorded):
    with pytest.raises(ConfigError, match="recorded"):
        reinforce(SoftPolicy(), squared_error, *recorded, ACQUIRABLE, 1, generator())


def test_more_steps_than_features_are_refused(complete):
    with pytest.raises(ConfigError, match="steps is 4"):
        simulate(SoftPolicy(), squared_error, *complete, ACQUIRABLE, 4, generator(), on_policy)


def as_table(x: Tensor, y: Tensor) -> Table:
    d = x.shape[1]
    return Table(
        x.numpy().astype(np.float32),
        y.numpy().astype(np.float32),
        "continuous",
        0,
        acquirable=np.arange(d) > 0,
        categorical=np.zeros(d, dtype=bool),
        costs=np.ones(d, dtype=np.float32),
    )

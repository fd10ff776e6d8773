"""Gradients of a policy by paths: straight-through picks among what was recorded."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from l2m_core.methods import make_method
from l2m_core.methods.networks import Schedule
from l2m_core.methods.trajectories import flat_gradient, network_loss, pathwise
from l2m_core.metrics import row_losses
from tests.methods.cohorts import LEVELS, learnable

WORTH = torch.tensor([0.0, 1.0, 2.0, 0.5])
ACQUIRABLE = torch.tensor([False, True, True, True])


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def told(x, a, y):
    """Every test takes from the loss what it is worth."""
    return 3 - a.float() @ WORTH


@pytest.fixture
def logits() -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.tensor([0.0, 0.3, -0.2, 0.1]))


def scalar_of(logits, x, steps: int, **options):
    def policy(x, a):
        return logits.expand(len(x), -1)

    y = torch.zeros(len(x))
    return pathwise(policy, told, x, y, ACQUIRABLE, steps, generator(), temperature=0.5, **options)


def test_the_gradient_points_where_the_exact_one_does(logits):
    found = flat_gradient([logits], scalar_of(logits, torch.zeros(200, 4), 1, repeats=20))
    probability = logits.detach().masked_fill(~ACQUIRABLE, -torch.inf).softmax(0)
    exact = -probability * (WORTH - probability @ WORTH)  # of - Σ π_j worth_j
    assert torch.nn.functional.cosine_similarity(found, exact, dim=0) > 0.97
    assert found[0] == 0


def test_the_loss_is_that_of_whole_picks_averaged_over_steps(logits):
    """All three tests in three steps, whatever their order: the last loss is known, and so are the bounds of the others."""
    one = float(scalar_of(logits, torch.zeros(2000, 4), 1))
    probability = logits.detach().masked_fill(~ACQUIRABLE, -torch.inf).softmax(0)
    assert one == pytest.approx(float(3 - probability @ WORTH), abs=0.05)
    only = torch.full((50, 4), np.nan)
    only[:, 2] = 1.0
    assert float(scalar_of(logits, only, 3)) == pytest.approx(1.0)


def test_what_was_not_recorded_is_never_picked_and_has_no_gradient(logits):
    x = torch.zeros(100, 4)
    x[:, 2] = np.nan
    found = flat_gradient([logits], scalar_of(logits, x, 2))
    assert found[2] == 0
    assert float(scalar_of(logits, x, 2).detach()) > 1.5  # the best test would take 2 of 3 at once


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_a_network_s_loss_is_its_prediction_s_and_follows_a_relaxed_choice(kind):
    table = learnable(kind, missing=0.1)
    method = make_method("mlp_random", schedule=Schedule(epochs=3)).fit(table)
    x, y = torch.from_numpy(table.x), torch.from_numpy(table.y)
    a = ~torch.isnan(x)
    by_prediction = row_losses(method.predict(table.x, a.numpy()), table.y)
    apart = network_loss(method)(x, a, y).detach() - torch.from_numpy(by_prediction)
    assert float(apart.std()) < 1e-4 and (kind == "continuous" or float(apart.abs().max()) < 1e-4)
    relaxed = a.float().requires_grad_()
    network_loss(method)(x, relaxed, y).sum().backward()
    assert relaxed.grad is not None and float(relaxed.grad[:, LEVELS].abs().sum()) > 0

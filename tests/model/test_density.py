"""Predictive distributions are distributions: they integrate to one, and their numbers agree with each other."""

import numpy as np
import pytest
import torch

from l2m_core.answering.predictive import Predictive
from l2m_core.metrics import row_crps
from l2m_core.model.density import LEAST_STD, Density, Gaussian, predictive
from l2m_core.model.interface import Memory, Output

SHIFT, SCALE = torch.tensor([[3.0], [-40.0]]), torch.tensor([[2.0], [15.0]])
GRID = torch.linspace(-25, 25, 40_001, dtype=torch.float64)  # standardised outcomes


def example(kind, seed: int = 0):
    raw = 1.5 * torch.randn(2, 3, 2 if kind is Gaussian else 16, generator=torch.Generator().manual_seed(seed))
    return kind(raw, SHIFT, SCALE)


def on_grid(distribution) -> tuple[torch.Tensor, torch.Tensor]:
    """Outcomes (2, 3, G) and the density there."""
    y = (SHIFT + SCALE * GRID.float()[None])[:, None].expand(2, 3, -1)
    kind, raw = type(distribution), distribution.raw if isinstance(distribution, Gaussian) else distribution.logits
    each = raw.flatten(0, 1)[:, None].expand(-1, len(GRID), -1)
    many = kind(each, *(t.repeat_interleave(3, 0) for t in (SHIFT, SCALE)))
    return y.double(), many.log_prob(y.flatten(0, 1)).exp().double().view(2, 3, -1)


kinds = pytest.mark.parametrize("kind", [Density, Gaussian])


@kinds
def test_it_integrates_to_one(kind):
    y, p = on_grid(example(kind))
    torch.testing.assert_close(torch.trapezoid(p, y), torch.ones(2, 3, dtype=torch.float64), atol=2e-3, rtol=0)


@kinds
@pytest.mark.parametrize("level", [0.01, 0.2, 0.5, 0.9, 0.999])
def test_the_quantile_inverts_the_distribution_function(kind, level):
    distribution = example(kind)
    y, p = on_grid(distribution)
    below = y <= distribution.quantile(level)[..., None]
    torch.testing.assert_close(
        torch.trapezoid(p * below, y), torch.full((2, 3), level, dtype=torch.float64), atol=4e-3, rtol=0
    )
    torch.testing.assert_close(
        distribution.below(distribution.quantile(level)).diagonal(dim1=1, dim2=2),
        torch.full((2, 3), level, dtype=torch.float64),
        atol=1e-5,
        rtol=0,
    )


@kinds
def test_mean_and_standard_deviation_agree_with_draws(kind):
    distribution = example(kind)
    jitter = torch.rand(800, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    levels = ((torch.arange(800) + jitter) / 800).clamp(1e-6, 1 - 1e-6)  # one draw in each 800th
    draws = torch.stack([distribution.quantile(level) for level in levels.tolist()])
    close = {"atol": 0.03 * float(SCALE.max()), "rtol": 0.05}
    torch.testing.assert_close(distribution.mean, draws.mean(0), **close)
    torch.testing.assert_close(distribution.std, draws.std(0), **close)


@kinds
def test_the_divergence_is_the_integral_it_stands_for(kind):
    left, right = example(kind, 0), example(kind, 1)
    y, p = on_grid(left)
    _, q = on_grid(right)
    integral = torch.trapezoid(p * (p.clamp_min(1e-290).log() - q.clamp_min(1e-290).log()), y)
    torch.testing.assert_close(left.divergence(right).double(), integral, atol=0.02, rtol=0.02)
    assert left.divergence(left).abs().max() < 1e-6


def test_a_gaussian_is_never_narrower_than_its_bound():
    narrow = Gaussian(torch.tensor([[[0.0, -1e4]]]), torch.zeros(1, 1), torch.full((1, 1), 3.0))
    assert narrow.std.item() == pytest.approx(3.0 * LEAST_STD)


def test_a_density_can_have_two_modes():
    logits = torch.full((1, 1, 16), -6.0)
    logits[..., 3] = logits[..., 12] = 3.0
    density = Density(logits, torch.zeros(1, 1), torch.ones(1, 1))
    sides = [float(density.log_prob(torch.tensor([[y]]))) for y in (-1.4, 0.0, 1.4)]
    assert sides[0] > sides[1] + 5 and sides[2] > sides[1] + 5


def test_the_crps_is_that_of_the_quantiles():
    logits = torch.randn(1, 6, 64, generator=torch.Generator().manual_seed(0)) - torch.linspace(-2, 2, 64).square()
    density = Density(logits.requires_grad_(), torch.full((1, 1), 5.0), torch.full((1, 1), 3.0))
    y = torch.tensor([[-2.0, 1.0, 4.0, 5.0, 8.0, 13.0]])
    with torch.no_grad():
        by_quantiles = row_crps(Predictive.of(density), y[0].numpy()) / 3.0
    found = density.crps(y)
    np.testing.assert_allclose(
        found[0].detach().numpy(), by_quantiles, atol=0.02, rtol=0.05
    )  # bins are wide at the ends
    assert found.sum().backward() is None and logits.grad.abs().sum() > 0


def test_the_right_distribution_is_chosen_by_what_the_model_says():
    memory = Memory((), (), None, None, SHIFT, SCALE)
    nothing = torch.zeros(2, 3, 4)
    assert isinstance(predictive(Output(torch.zeros(2, 3, 2), nothing, nothing), memory), Gaussian)
    assert isinstance(predictive(Output(torch.zeros(2, 3, 16), nothing, nothing), memory), Density)


@kinds
@pytest.mark.parametrize("level", [0.0, 1.0, -1.0])
def test_a_level_outside_0_and_1_is_refused(kind, level):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        example(kind).quantile(level)

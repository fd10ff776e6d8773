"""The gp prior: smooth functions of the informative features, with known noise."""

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.tasks.gp import GPConfig, GPPrior


def draw(rows: int = 150, features: int = 6, tasks: int = 16, seed: int = 0, **settings):
    prior = GPPrior(GPConfig(**settings))
    return prior.sample(torch.Generator().manual_seed(seed), tasks, rows, features)


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52", "matern"])
def test_the_truth_is_calibrated_against_the_drawn_outcomes(kernel):
    batch = draw(kernel=kernel)
    z = (batch.y - batch.truth.mean) / batch.truth.std
    assert (batch.truth.std == 0.02).all()
    assert z.mean().item() == pytest.approx(0, abs=0.1) and z.std().item() == pytest.approx(1, abs=0.05)
    assert (z.abs() < 1.96).float().mean().item() == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52"])
def test_the_function_has_zero_mean_and_the_output_scale(kernel):
    function = draw(tasks=3000, rows=4, kernel=kernel, output_scale=(1.5, 1.5)).truth.mean
    assert function.mean().item() == pytest.approx(0, abs=0.1)
    assert function.std().item() == pytest.approx(1.5, abs=0.06)


@pytest.mark.parametrize(
    "kernel, expected",
    [
        ("rbf", lambda t: torch.exp(-0.5 * t**2)),
        ("matern32", lambda t: (1 + 3**0.5 * t) * torch.exp(-(3**0.5) * t)),
        ("matern52", lambda t: (1 + 5**0.5 * t + 5 / 3 * t**2) * torch.exp(-(5**0.5) * t)),
    ],
)
def test_two_rows_covary_as_the_kernel_says(kernel, expected):
    """Over many tasks of two rows, mean f(a) f(b) among pairs of like distance."""
    batch = draw(
        tasks=60_000, rows=2, features=1, kernel=kernel, output_scale=(1, 1), length_scale=(1, 1), informative=(1, 1)
    )
    distance = (batch.x[:, 0, 0] - batch.x[:, 1, 0]).abs()
    product = batch.truth.mean[:, 0] * batch.truth.mean[:, 1]
    for low in (0.0, 0.5, 1.0, 1.5, 2.0):
        near = (distance >= low) & (distance < low + 0.5)
        assert product[near].mean().item() == pytest.approx(expected(distance[near]).mean().item(), abs=0.05)


def test_only_informative_features_matter():
    """Rows next to each other along the one informative feature have nearly the same function value."""
    batch = draw(informative=(1, 1), length_scale=(5.0, 5.0), features=5, rows=300)
    assert (batch.truth.informative.sum(dim=2) == 1).all()
    informative = batch.truth.informative[:, 0].int().argmax(dim=1)
    along = batch.x.gather(2, informative[:, None, None].expand(-1, 300, 1)).squeeze(2)
    ordered = batch.truth.mean.gather(1, along.argsort(dim=1))
    assert ordered.diff(dim=1).abs().median() < 0.02


def test_the_number_of_informative_features_stays_in_range():
    count = draw(tasks=200, rows=3, features=8, informative=(2, 4)).truth.informative[:, 0].sum(dim=1)
    assert set(count.tolist()) == {2, 3, 4}
    assert (draw(tasks=20, rows=3, features=3, informative=(2, 40)).truth.informative[:, 0].sum(dim=1) <= 3).all()


def test_many_rows_of_a_very_smooth_function_are_drawn():
    batch = draw(tasks=1, rows=1000, features=2, length_scale=(5.0, 5.0))
    assert batch.y.isfinite().all()


@pytest.mark.parametrize(
    "settings, name", [({"kernel": "cubic"}, "kernel"), ({"noise": 0}, "noise"), ({"length_scale": (5, 0.1)}, "length")]
)
def test_impossible_settings_are_refused_by_name(settings, name):
    with pytest.raises(ConfigError, match=name):
        GPConfig(**settings)

"""A Gaussian process that integrates over what is unknown of a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from l2m_core.cohort import Cohort
from l2m_core.metrics import row_losses
from l2m_core.tabular import gaussian_process
from l2m_core.tabular.gaussian_process import GaussianProcess, Kernel
from l2m_core.tabular.imputation import Imputed
from l2m_core.tabular.linear import FittedLinear, LinearSettings
from l2m_core.tabular.preparation import Context, prepare
from tests.methods.cohorts import LEVELS, learnable

FEATURES = 3
KERNEL = Kernel(torch.tensor([0.8, 1.3, 2.0]).double().log(), torch.tensor([0.7, 0.4, 0.2]).double().log())


def crossed(rows: int, seed: int = 0) -> Context:
    """An outcome of which two features tell only together."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, FEATURES)).astype(np.float32)
    y = x[:, 0] * x[:, 1] + 0.2 * generator.normal(size=rows)
    return prepare(Cohort.from_arrays(x, (10 + 3 * y).astype(np.float32), kind="continuous"))


def fitted(context: Context) -> GaussianProcess:
    return GaussianProcess(context, np.random.default_rng(0))


def told(context: Context) -> np.ndarray:
    return np.ones_like(context.x, dtype=bool)


def by_hand(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """k(x, x') of whole rows."""
    length, (smooth, linear, _) = KERNEL.length.exp(), KERNEL.size.exp()
    apart = ((one - other) / length).square().sum(-1)
    return smooth * (-apart / 2).exp() + linear * (one * other / length.square()).sum(-1)


def test_covariances_are_means_over_what_is_unknown():
    generator = torch.Generator().manual_seed(0)
    middle = torch.randn(2, FEATURES, generator=generator).double()
    variance = torch.tensor([[0.0, 0.5, 0.0], [0.3, 0.0, 1.0]]).double()
    drawn = middle[:, None] + variance.sqrt()[:, None] * torch.randn(2, 400_000, FEATURES, generator=generator).double()
    expected = by_hand(drawn[0], drawn[1]).mean()
    rows = Imputed(middle, variance)
    assert float(KERNEL.between(rows, rows)[0, 1]) == pytest.approx(float(expected), abs=0.005)
    # Of one row with itself, of one draw: what stays open counts as noise.
    own = by_hand(drawn, drawn).mean(1) + KERNEL.size[2].exp()
    assert torch.allclose(KERNEL.own(rows), own, atol=0.01)


def test_whole_rows_have_the_covariance_of_a_process_without_holes():
    x = torch.randn(5, FEATURES, generator=torch.Generator().manual_seed(1)).double()
    rows = Imputed(x, torch.zeros_like(x))
    assert torch.allclose(KERNEL.between(rows, rows), by_hand(x[:, None], x[None]))


def test_it_foresees_what_features_tell_together_only():
    context, new = crossed(200), crossed(300, seed=1)
    straight = FittedLinear(context, LinearSettings(0.3, 0, False), np.random.default_rng(0))
    process, line = (row_losses(model.predict(new.x, told(new)), new.y).mean() for model in (fitted(context), straight))
    assert process < line - 0.2


def test_it_is_less_sure_where_less_is_known():
    process, new = fitted(crossed(150)), crossed(50, seed=1)
    nothing, whole = (process.predict(new.x, np.full_like(new.x, share, dtype=bool)) for share in (False, True))
    assert (nothing.std > 1.5 * whole.std).mean() > 0.9
    # With nothing known every row is foreseen alike, about as the outcome is spread.
    assert np.ptp(nothing.mean) < 1e-9
    assert nothing.std[0] == pytest.approx(crossed(150).y.std(), rel=0.35)


def test_holes_categories_and_rows_without_any_value_are_read():
    context = prepare(learnable("continuous", rows=120))
    x = context.x.copy()
    x[:3] = np.nan
    x[3, LEVELS] = 99  # a level that the context lacks
    told_of = fitted(replace(context, x=x)).predict(x, np.ones_like(x, dtype=bool))
    assert np.isfinite(told_of.mean).all() and (told_of.std > 0).all()
    assert np.ptp(told_of.mean[:3]) < 1e-9


def test_of_a_long_cohort_a_part_is_read_and_rows_are_taken_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch):
    context, new = crossed(200), crossed(30, seed=1)
    monkeypatch.setattr(gaussian_process, "MOST_ROWS", 120)
    whole = fitted(context)
    assert len(whole.rows.middle) == 120
    one = whole.predict(new.x, told(new))
    monkeypatch.setattr(
        gaussian_process, "CELLS", 7 * 120 * FEATURES
    )  # seven rows at a time, and more where they are imputed
    other = whole.predict(new.x, told(new))
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)


def test_the_same_rows_give_the_same_numbers_whether_gradients_are_kept_or_not():
    context = crossed(250)
    one = fitted(context).predict(context.x, told(context))
    with torch.no_grad():
        other = fitted(context).predict(context.x, told(context))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.std, other.std)


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**-60])
def test_the_unit_of_values_and_outcome_does_not_matter(unit):
    context = crossed(40)
    small = replace(context, x=context.x * np.float32(unit), y=context.y * np.float32(unit))
    told_plainly = fitted(context).predict(context.x, told(context))
    told_small = fitted(small).predict(small.x, told(small))
    np.testing.assert_allclose(told_small.mean / unit, told_plainly.mean, rtol=1e-4)
    np.testing.assert_allclose(told_small.std / unit, told_plainly.std, rtol=1e-4)

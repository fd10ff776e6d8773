"""The synthetic prior: its truth agrees with its outcomes, and its ranges are kept."""

import pytest
import torch

from l2m_core.tasks.missingness import Missingness
from l2m_core.tasks.synthetic import SyntheticConfig, SyntheticPrior
from tests.tasks.calibration import assert_calibrated


def draw(tasks: int = 60, rows: int = 300, features: int = 8, seed: int = 0, **settings):
    prior = SyntheticPrior(SyntheticConfig(**settings))
    return prior.sample(torch.Generator().manual_seed(seed), tasks, rows, features)


def test_probabilities_are_calibrated_against_the_drawn_outcomes():
    assert_calibrated(draw(max_classes=4))


def test_continuous_outcomes_scatter_as_the_truth_says_where_it_has_a_closed_form():
    batch = draw(outcome="continuous", tasks=100)
    known = batch.truth.std.isfinite()
    z = ((batch.y - batch.truth.mean) / batch.truth.std)[known]
    assert 0.4 < known.float().mean() < 0.9
    assert z.mean().item() == pytest.approx(0, abs=0.05) and z.std().item() == pytest.approx(1, abs=0.05)


def test_recorded_outcomes_have_steps_and_limits_and_claim_no_closed_form():
    recorded, plain = draw(outcome="continuous", recorded_share=1.0, tasks=100), draw(outcome="continuous", tasks=100)
    assert recorded.truth.std.isnan().all() and recorded.y.isfinite().all()
    # How many values there are of 300 rows, and how many rows share the most common one.
    values, shared = zip(*(counted(y) for y in recorded.y), strict=True)
    assert sum(count < 40 for count in values) > 10 and sum(60 < most < 210 for most in shared) > 10
    assert all(most < 0.8 * 300 for most in shared), "there is a spread to be learned of"
    assert sum(count > 290 for count in map(lambda y: counted(y)[0], plain.y)) > 90


def counted(y: torch.Tensor) -> tuple[int, int]:
    _, counts = y.unique(return_counts=True)
    return len(counts), int(counts.max())


def test_classes_and_prevalence_vary():
    batch = draw(tasks=200, rows=100)
    assert {2, 3, 10} <= set(batch.n_classes.tolist()) and batch.n_classes.max() == 10
    binary = batch.select(batch.n_classes == 2)
    prevalence = binary.truth.probabilities[..., 1].mean(dim=1)
    assert prevalence.min() < 0.1 and prevalence.max() > 0.8
    assert (draw(tasks=20, max_classes=2).n_classes == 2).all()


def test_every_task_has_something_to_learn():
    """The truth knows more than the class frequencies, but for the few draws that no replacement was left for."""
    batch = draw(tasks=100, rows=200)
    p = batch.truth.probabilities
    marginal = p.mean(dim=1)
    before = -(marginal * marginal.clamp_min(1e-9).log()).sum(dim=1)
    after = -(p * p.clamp_min(1e-9).log()).sum(dim=2).mean(dim=1)
    assert ((1 - after / before) >= 0.03).float().mean() > 0.97


def test_categories_are_whole_codes_and_some_columns_have_ties():
    batch = draw(tasks=100, rows=100)
    codes = batch.x.transpose(1, 2)[batch.categorical]
    assert len(codes) > 0 and torch.equal(codes, codes.round()) and (codes >= 0).all()
    distinct = torch.tensor([len(column.unique()) for column in batch.x.transpose(1, 2).flatten(0, 1)])
    assert (distinct == 2).float().mean() > 0.05 and (distinct == 100).float().mean() > 0.2


def test_missingness_is_what_the_config_asks_for():
    assert draw(tasks=4, missingness=Missingness.only("none")).r.all()

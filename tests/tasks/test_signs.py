"""The signs prior: signs are absent, or narrow, where no form shows them."""

import torch

from l2m_core.tasks.signs import SignsConfig, SignsPrior


def drawn(seed: int = 0, tasks: int = 60, rows: int = 400, features: int = 8, **settings):
    prior = SignsPrior(SignsConfig(**settings))
    return prior.sample(torch.Generator().manual_seed(seed), tasks, rows, features)


def test_a_graded_sign_that_no_form_shows_is_in_one_state_for_most():
    batch = drawn(3, informative=(0.0, 0.0), background=(0.01, 0.05), error=(0.002, 0.01))
    is_graded = (batch.x == batch.x.round()).all(1)
    modes = batch.x.mode(1).values
    common = (batch.x == modes[:, None]).float().mean(1)[is_graded]
    assert len(common) > 100 and float(common.min()) > 0.85


def test_what_is_measured_varies_more_among_those_who_show_it():
    batch = drawn(4, rows=2000, max_classes=2, forms=1, informative=(1.0, 1.0), shown=(0.5, 0.5))
    is_number = (batch.x != batch.x.round()).any(1) & (batch.x < 0).any(1)  # as measured, not skewed
    of_class = [torch.where(batch.y[..., None] == k, batch.x, torch.nan) for k in (0, 1)]
    spread = torch.stack([(x - x.nanmean(1, keepdim=True)).square().nanmean(1).sqrt() for x in of_class])
    ratio = (spread.amax(0) / spread.amin(0))[is_number & ((batch.y == 1).sum(1) > 100)[:, None]]
    assert float((ratio > 1.3).float().mean()) > 0.3


def test_a_sign_in_the_same_state_everywhere_is_no_error():
    batch = drawn(5, rows=20, background=(0.001, 0.001), error=(1e-6, 1e-6))
    assert batch.x.isfinite().all() and batch.truth.probabilities.isfinite().all()

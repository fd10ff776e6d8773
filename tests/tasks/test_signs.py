"""The signs prior: its truth is the real posterior, and signs are absent, or narrow, where no form shows them."""

import torch

from l2m_core.tasks.signs import SignsConfig, SignsPrior


def drawn(seed: int = 0, tasks: int = 60, rows: int = 400, features: int = 8, **settings):
    prior = SignsPrior(SignsConfig(**settings))
    return prior.sample(torch.Generator().manual_seed(seed), tasks, rows, features)


def test_the_truth_is_calibrated_and_loses_what_its_entropy_says():
    batch = drawn()
    p = batch.truth.probabilities
    likelihood = p.gather(2, batch.y[..., None])[..., 0].log()
    entropy = -(p * p.clamp_min(1e-12).log()).sum(-1)
    # 24,000 rows of 60 tasks: the two agree but for chance, which is about 0.005 nats.
    assert abs(float(-likelihood.mean() - entropy.mean())) < 0.03
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        said = (p >= low) & (p < low + 0.2) & (torch.arange(p.shape[-1]) < batch.n_classes[:, None, None])
        came = (batch.y[..., None] == torch.arange(p.shape[-1]))[said]
        assert abs(float(came.float().mean() - p[said].mean())) < 0.03


def test_a_truth_of_another_sharpness_is_worse():
    batch = drawn(1)
    logits = batch.truth.probabilities.clamp_min(1e-30).log()

    def loss(sharpness: float) -> float:
        p = (sharpness * logits).log_softmax(-1)
        return float(-p.gather(2, batch.y[..., None]).mean())

    assert loss(1.0) < min(loss(0.8), loss(1.25))


def test_signs_that_no_form_shows_do_not_differ_between_classes():
    batch = drawn(2, tasks=200, rows=600, max_classes=2, informative=(0.3, 0.7), shown=(0.5, 0.9))
    told = batch.truth.informative[:, 0]
    rank = batch.x.argsort(dim=1, stable=True).argsort(1).float() / 600
    is_second = (batch.y == 1).float()[..., None]
    gap = (rank * is_second).sum(1) / is_second.sum(1).clamp_min(1) - (rank * (1 - is_second)).sum(1) / (
        1 - is_second
    ).sum(1).clamp_min(1)
    enough = (is_second.sum(1) > 60).expand_as(told)
    assert float(gap[enough & ~told].abs().mean()) < 0.05
    assert float(gap[enough & told].abs().mean()) > 0.1


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

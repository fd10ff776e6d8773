"""The findings prior: its truth is the real posterior, and what it calls informative is what tells."""

import torch

from l2m_core.tasks.findings import FindingsConfig, FindingsPrior, draw_centres


def drawn(seed: int = 0, tasks: int = 60, rows: int = 400, features: int = 8, **settings):
    prior = FindingsPrior(FindingsConfig(**settings))
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


def test_features_called_uninformative_do_not_differ_between_classes():
    batch = drawn(2, tasks=200, rows=600, max_classes=2, informative=(0.3, 0.7), size=(2.0, 3.0), raised=(0.5, 0.9))
    informative = batch.truth.informative[:, 0]
    rank = batch.x.argsort(1).argsort(1).float() / 600
    is_second = (batch.y == 1).float()[..., None]
    gap = (rank * is_second).sum(1) / is_second.sum(1).clamp_min(1) - (rank * (1 - is_second)).sum(1) / (
        1 - is_second
    ).sum(1).clamp_min(1)
    enough = (is_second.sum(1) > 60).expand_as(informative)
    assert float(gap[enough & ~informative].abs().mean()) < 0.04
    assert float(gap[enough & informative].abs().mean()) > 0.15


def test_wide_tables_tell_more_than_narrow_ones():
    def left(features: int) -> float:
        p = drawn(3, features=features).truth.probabilities
        return float(-(p * p.clamp_min(1e-12).log()).sum(-1).mean())

    assert left(32) < 0.7 * left(8)


def test_one_class_moves_nothing_where_a_task_has_healthy_patients():
    prevalence = torch.full((50, 4), 0.25)
    config = FindingsConfig(healthy_share=1.0, informative=(1.0, 1.0), raised=(1.0, 1.0))
    centres = draw_centres(torch.Generator().manual_seed(4), config, prevalence, 6)
    assert ((centres == 0).all(-1).sum(1) == 1).all()

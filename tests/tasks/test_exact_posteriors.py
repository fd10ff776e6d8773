"""Priors whose outcome comes first: their truth is the real posterior, and what they call informative is what tells."""

import pytest
import torch

from l2m_core.tasks.registry import build_prior

PRIORS = ("findings", "signs", "patterns")


def drawn(name: str, seed: int, tasks: int = 60, rows: int = 400, features: int = 8, **settings):
    return build_prior(name, settings).sample(torch.Generator().manual_seed(seed), tasks, rows, features)


@pytest.mark.parametrize("name", PRIORS)
def test_the_truth_is_calibrated_and_loses_what_its_entropy_says(name):
    batch = drawn(name, 0)
    p = batch.truth.probabilities
    likelihood = p.gather(2, batch.y[..., None])[..., 0].log()
    entropy = -(p * p.clamp_min(1e-12).log()).sum(-1)
    # 24,000 rows of 60 tasks: the two agree but for chance, which is about 0.005 nats.
    assert abs(float(-likelihood.mean() - entropy.mean())) < 0.03
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        said = (p >= low) & (p < low + 0.2) & (torch.arange(p.shape[-1]) < batch.n_classes[:, None, None])
        came = (batch.y[..., None] == torch.arange(p.shape[-1]))[said]
        assert abs(float(came.float().mean() - p[said].mean())) < 0.03


@pytest.mark.parametrize("name", PRIORS)
def test_a_truth_of_another_sharpness_is_worse(name):
    batch = drawn(name, 1)
    logits = batch.truth.probabilities.clamp_min(1e-30).log()

    def loss(sharpness: float) -> float:
        p = (sharpness * logits).log_softmax(-1)
        return float(-p.gather(2, batch.y[..., None]).mean())

    assert loss(1.0) < min(loss(0.8), loss(1.25))


@pytest.mark.parametrize(
    ("name", "settings", "most", "least"),
    [
        ("findings", {"size": (2.0, 3.0), "raised": (0.5, 0.9)}, 0.04, 0.15),
        ("signs", {"shown": (0.5, 0.9)}, 0.05, 0.1),  # most have few grades, so ranks differ less
    ],
)
def test_features_called_uninformative_do_not_differ_between_classes(name, settings, most, least):
    batch = drawn(name, 2, tasks=200, rows=600, max_classes=2, informative=(0.3, 0.7), **settings)
    informative = batch.truth.informative[:, 0]
    rank = batch.x.argsort(dim=1, stable=True).argsort(1).float() / 600
    is_second = (batch.y == 1).float()[..., None]
    gap = (rank * is_second).sum(1) / is_second.sum(1).clamp_min(1) - (rank * (1 - is_second)).sum(1) / (
        1 - is_second
    ).sum(1).clamp_min(1)
    enough = (is_second.sum(1) > 60).expand_as(informative)
    assert float(gap[enough & ~informative].abs().mean()) < most
    assert float(gap[enough & informative].abs().mean()) > least

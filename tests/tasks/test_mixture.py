"""Mixtures: tasks of several priors in one batch, each with its own truth."""

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.tasks.mixture import MixtureConfig, MixturePrior, Part, concatenate
from l2m_core.tasks.registry import build_prior


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def mixture(first: dict, second: dict, **settings):
    return build_prior("mixture", {"parts": [first, second], **settings})


BINARY = {"prior": "bnn", "weight": 3.0, "settings": {"classes": [2, 2]}}
FIVE = {"prior": "bnn_plan", "weight": 1.0, "settings": {"classes": [5, 5]}}


def test_every_task_keeps_its_own_values_and_truth():
    batch = mixture(BINARY, FIVE).sample(seeded(), 80, 60, 5)
    two = batch.n_classes == 2
    assert set(batch.n_classes.tolist()) == {2, 5}
    assert batch.truth.probabilities.shape == (80, 60, 5)
    assert (batch.y[two] < 2).all() and (batch.y[~two].amax(dim=1) > 2).float().mean() > 0.8
    assert (batch.truth.probabilities[two][..., 2:] == 0).all()
    assert (batch.truth.probabilities[~two][..., 2:].sum(dim=(1, 2)) > 0).all()
    drawn = batch.truth.probabilities.gather(2, batch.y.unsqueeze(2))
    assert (drawn > 0).all() and drawn.mean() > 0.6, "labels go with the probabilities that made them"


def test_priors_come_by_weight_and_in_mixed_order():
    batch = mixture(BINARY, FIVE).sample(seeded(), 600, 4, 3)
    binary = (batch.n_classes == 2).float()
    assert binary.mean().item() == pytest.approx(0.75, abs=0.08)
    assert binary[:300].mean().item() == pytest.approx(0.75, abs=0.1)


def test_a_part_without_weight_never_comes():
    batch = mixture(BINARY, {**FIVE, "weight": 0.0}).sample(seeded(), 50, 4, 3)
    assert (batch.n_classes == 2).all()


def test_outcome_kinds_mix_by_batch_only():
    parts = {"prior": "gp"}, {"prior": "bnn"}
    with pytest.raises(ConfigError, match="by: batch"):
        mixture(*parts).sample(seeded(), 40, 10, 3)
    by_batch, generator = mixture(*parts, by="batch"), seeded()
    kinds = {by_batch.sample(generator, 2, 10, 3).continuous for _ in range(20)}
    assert kinds == {True, False}


def test_a_truth_that_one_prior_lacks_becomes_nan():
    known = build_prior("bnn").sample(seeded(), 2, 20, 3)
    unknown = build_prior("semi_synthetic", {"labels": "real"}, x=torch.randn(30, 3), y=torch.arange(30) % 2).sample(
        seeded(), 3, 20, 3
    )
    joined = concatenate([known, unknown])
    assert torch.equal(joined.truth.probabilities[:2], known.truth.probabilities)
    assert joined.truth.probabilities[2:].isnan().all() and not joined.truth.informative[2:].any()
    assert joined.truth.mean is None and concatenate([unknown, unknown]).truth is None


def test_a_mixture_passes_data_to_the_parts_that_use_it():
    parts = [BINARY, {"prior": "semi_synthetic", "settings": {"labels": "real"}}]
    prior = build_prior("mixture", {"parts": parts}, x=torch.randn(30, 3), y=torch.arange(30) % 3)
    assert set(prior.sample(seeded(), 30, 20, 3).n_classes.tolist()) == {2, 3}


def test_impossible_mixtures_are_refused():
    with pytest.raises(ConfigError, match="weight above 0"):
        MixtureConfig(parts=())
    with pytest.raises(ConfigError, match="by"):
        MixtureConfig(parts=(Part("bnn"),), by="row")
    with pytest.raises(ConfigError, match="1 parts and 0 priors"):
        MixturePrior(MixtureConfig(parts=(Part("bnn"),)), priors=())

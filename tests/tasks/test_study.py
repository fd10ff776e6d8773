"""The study's own BNN priors: one network whose inputs clusters mask, interacting pairs without clusters, covariates."""

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.tasks.bnn import BNNConfig, BNNPrior
from l2m_core.tasks.draws import standardise
from l2m_core.tasks.missingness import Missingness, sample_missingness
from l2m_core.tasks.study import StudyBNNConfig, StudyBNNPlanConfig, StudyBNNPlanPrior, StudyBNNPrior, study_label


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def steepest(batch) -> torch.Tensor:
    """(B,) the largest change of the true probability between neighbours on the only feature, for a step of 0.02."""
    x, order = batch.x.squeeze(2).sort(dim=1)
    p = batch.truth.probabilities[..., 1].gather(1, order)
    return (p.diff(dim=1).abs() - 30 * (x.diff(dim=1) - 0.02).clamp_min(0)).amax(dim=1)


def test_all_clusters_share_one_network():
    """With one feature that every cluster reads, the probability is one smooth curve; with networks of its own for each
    cluster it jumps where one cluster ends."""
    gentle = {"clusters": (3, 3), "importance": (1.0, 1.0), "informative": (1, 1)}
    shared = StudyBNNPrior(StudyBNNConfig(scale=(0.2, 0.2), temperature=(0.5, 0.5), **gentle))
    own = BNNPrior(BNNConfig(scale=(0.2, 0.2), temperature=(0.5, 0.5), baseline=(0, 0), **gentle))
    assert steepest(shared.sample(seeded(), 20, 2000, 1)).max() < 0.05
    assert steepest(own.sample(seeded(), 20, 2000, 1)).max() > 0.1


def test_clusters_read_their_own_features_of_one_network():
    config = StudyBNNConfig(clusters=(3, 3), informative=(2, 3))
    z = standardise(torch.randn(10, 300, 12, generator=seeded(1)))
    _, _, truth = study_label(seeded(2), z, config)
    kinds = [len({tuple(row) for row in task.tolist()}) for task in truth.informative]
    assert max(kinds) == 3 and set(truth.informative.sum(dim=2).unique().tolist()) == {2, 3}


@pytest.mark.parametrize("config", [StudyBNNConfig(clusters=(1, 1), informative=(2, 4)), StudyBNNPlanConfig()])
def test_features_that_are_not_informative_change_nothing(config):
    z = torch.randn(10, 100, 12, generator=seeded(1))
    _, _, truth = study_label(seeded(2), z, config)
    noise = torch.randn(10, 100, 12, generator=seeded(3))
    _, _, again = study_label(seeded(2), torch.where(truth.informative, z, noise), config)
    _, _, other = study_label(seeded(2), torch.where(truth.informative, noise, z), config)
    assert torch.allclose(truth.probabilities, again.probabilities, atol=1e-4)
    assert (truth.probabilities - other.probabilities).abs().mean() > 0.03


@pytest.mark.parametrize("prior", [StudyBNNPrior(), StudyBNNPlanPrior()])
def test_the_bias_matches_a_prevalence_between_the_appendix_s_ends(prior):
    prevalence = prior.sample(seeded(), 300, 100, 6).truth.probabilities[..., 1].mean(dim=1)
    assert 0.049 < prevalence.min() < 0.1 and 0.9 < prevalence.max() < 0.951


@pytest.mark.parametrize("classes", [(2, 2), (6, 6), (2, 4)])
def test_outcomes_happen_as_often_as_the_truth_says(classes):
    batch = StudyBNNPrior(StudyBNNConfig(classes=classes)).sample(seeded(), 60, 500, 8)
    probabilities = batch.truth.probabilities
    for k in range(classes[1]):
        said, seen = probabilities[..., k], (batch.y == k).float()
        error = (said * (1 - said)).sum().sqrt() / said.numel()
        assert abs(said.mean() - seen.mean()) < 4.5 * error + 1e-5
    assert (batch.y < batch.n_classes[:, None]).all()


def test_all_numbers_of_informative_features_are_alike():
    """From one to all of the task's, uniformly: not mostly all, as a cut after the draw would make it."""
    informative = StudyBNNPrior(StudyBNNConfig(clusters=(1, 1))).sample(seeded(), 2000, 4, 5).truth.informative
    count = informative[:, 0].sum(dim=1).bincount(minlength=6)[1:]
    assert count.min() > 330 and count.max() < 470


def test_planning_tasks_have_no_clusters():
    informative = StudyBNNPlanPrior().sample(seeded(), 20, 100, 10).truth.informative
    assert (informative == informative[:, :1]).all()
    assert set(informative[:, 0].sum(dim=1).unique().tolist()) <= {4, 5, 6, 7, 8}


def test_a_pair_tells_where_its_product_is_beyond_the_threshold():
    config = StudyBNNPlanConfig(
        informative=(2, 2), interactions=(1, 1), threshold=(0.5, 0.5), interaction_share=(1e3, 1e3), scale=(0.1, 0.1)
    )
    batch = StudyBNNPlanPrior(config).sample(seeded(), 10, 400, 6)
    product = batch.x[batch.truth.informative].view(10, 400, 2).prod(dim=2)
    logit = torch.logit(batch.truth.probabilities[..., 1].double())
    for task in range(10):
        below = logit[task][(product[task] <= 0.5) & logit[task].isfinite()]
        assert below.numel() == 0 or below.max() - below.min() < 1.0


def test_gaussian_covariates_are_correlated_and_normal_ones_are_not():
    def correlation(kind: str) -> float:
        x = StudyBNNPrior(StudyBNNConfig(covariates=kind)).sample(seeded(), 20, 2000, 6).x
        products = (x.transpose(1, 2) @ x / 2000).abs()
        return float((products.sum() - 20 * 6) / (20 * 30))

    assert correlation("gaussian") > 0.25 and correlation("normal") < 0.03


def test_features_are_normalised_over_the_task_unless_told_otherwise():
    x = StudyBNNPrior(StudyBNNConfig(covariates="gaussian")).sample(seeded(), 5, 300, 6).x
    assert x.mean(dim=1).abs().max() < 1e-5 and torch.allclose(x.std(dim=1, correction=0), torch.ones(5, 6), atol=1e-4)
    raw = StudyBNNPrior(StudyBNNConfig(covariates="gaussian", normalised=False)).sample(seeded(), 5, 300, 6).x
    assert raw.mean(dim=1).abs().max() > 1


def test_every_feature_draws_its_own_rate_of_missing_values():
    """At most one half, uniformly: the features of a task differ as much as those of different tasks."""
    missing = 1 - StudyBNNPrior().sample(seeded(), 40, 1000, 20).r.float().mean(dim=1)
    assert missing.max() < 0.56
    assert missing.mean() == pytest.approx(0.25, abs=0.02) and missing.std(dim=1).mean() > 0.13
    config = Missingness.only("mcar", rate=(0.0, 0.5), complete=0.0)
    own = sample_missingness(seeded(), torch.zeros(40, 1000, 20), torch.ones(40, 20, dtype=torch.bool), config)
    assert (1 - own.float().mean(dim=1)).std(dim=1).mean() < 0.11, "by default a task has an interval of its own"


@pytest.mark.parametrize(("scale", "largest"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)])
def test_a_sweep_over_missingness_scales_the_rates_of_the_features(scale, largest):
    config = Missingness.only("mcar", rate=(0.0, 1.0), own_interval=False, complete=0.0, scale=scale)
    r = sample_missingness(seeded(), torch.zeros(40, 1000, 20), torch.ones(40, 20, dtype=torch.bool), config)
    missing = 1 - r.float().mean(dim=1)
    assert missing.max() == pytest.approx(largest, abs=0.05) and missing.mean() == pytest.approx(largest / 2, abs=0.03)


@pytest.mark.parametrize(
    "kind, settings, name",
    [
        (StudyBNNConfig, {"covariates": "uniform"}, "covariates"),
        (StudyBNNConfig, {"classes": (1, 2)}, "classes"),
        (StudyBNNConfig, {"temperature": (0.0, 0.5)}, "temperature"),
        (StudyBNNPlanConfig, {"informative": (1, 4)}, "informative"),
        (StudyBNNPlanConfig, {"interactions": (0, 2)}, "interactions"),
    ],
)
def test_impossible_settings_are_refused_by_name(kind, settings, name):
    with pytest.raises(ConfigError, match=name):
        kind(**settings)

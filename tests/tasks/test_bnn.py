"""The bnn and bnn_plan priors: prevalence, temperature, clusters, informative features, interactions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from l2m_core.errors import ConfigError
from l2m_core.tasks.bnn import BNNConfig, BNNPlanConfig, BNNPlanPrior, BNNPrior, label
from l2m_core.tasks.outcomes import match_prevalence

KINDS = [(BNNPrior, BNNConfig), (BNNPlanPrior, BNNPlanConfig)]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def assert_calibrated(probability: torch.Tensor, happened: torch.Tensor) -> None:
    """In each decile of what the truth says, as many events as it says, within sampling error."""
    order = probability.flatten().argsort()
    for part in order.chunk(10):
        said, seen = probability.flatten()[part], happened.flatten()[part].float()
        error = (said * (1 - said)).sum().sqrt() / len(part)
        assert abs(said.mean() - seen.mean()) < 4.5 * error + 1e-4


@pytest.mark.parametrize("prior, config", KINDS)
def test_binary_truth_is_calibrated_against_the_drawn_outcomes(prior, config):
    batch = prior(config()).sample(seeded(), 40, 500, 8)
    assert_calibrated(batch.truth.probabilities[..., 1], batch.y == 1)


@pytest.mark.parametrize("prior, config", KINDS)
def test_multiclass_truth_is_calibrated_class_by_class(prior, config):
    batch = prior(config(classes=(2, 5))).sample(seeded(), 60, 500, 8)
    probabilities, absent = batch.truth.probabilities, torch.arange(5) >= batch.n_classes[:, None]
    assert torch.allclose(probabilities.sum(dim=2), torch.ones(60, 500), atol=1e-5)
    assert set(batch.n_classes.tolist()) == {2, 3, 4, 5}
    assert (probabilities.amax(dim=1)[absent] == 0).all()
    assert (batch.y < batch.n_classes[:, None]).all()
    for k in range(5):
        assert_calibrated(probabilities[..., k], batch.y == k)


@pytest.mark.parametrize("prior, config", KINDS)
def test_continuous_truth_is_calibrated(prior, config):
    batch = prior(config(outcome="continuous", noise=(0.1, 0.5))).sample(seeded(), 20, 500, 8)
    z = (batch.y - batch.truth.mean) / batch.truth.std
    assert batch.n_classes is None and batch.y.dtype == torch.float32
    assert z.std().item() == pytest.approx(1, abs=0.04)
    assert batch.truth.std.min() >= 0.1 - 1e-6 and batch.truth.std.max() <= 0.5 + 1e-6
    assert batch.truth.mean.std(dim=1) == pytest.approx(torch.ones(20), abs=0.01)


@pytest.mark.parametrize("prevalence", [0.05, 0.3, 0.95])
def test_prevalence_matches(prevalence):
    batch = BNNPrior(BNNConfig(prevalence=(prevalence, prevalence))).sample(seeded(), 30, 800, 6)
    expected = batch.truth.probabilities[..., 1].mean(dim=1)
    assert torch.allclose(expected, torch.full_like(expected, prevalence), atol=1e-3)
    assert (batch.y.float().mean().item()) == pytest.approx(prevalence, abs=0.01)


def test_prevalence_fills_its_range():
    prevalence = BNNPrior().sample(seeded(), 300, 100, 6).truth.probabilities[..., 1].mean(dim=1)
    assert 0.049 < prevalence.min() < 0.1 and 0.9 < prevalence.max() < 0.951


@given(
    scale=st.floats(0.0, 60.0), prevalence=st.floats(0.01, 0.99), shift=st.floats(-50.0, 50.0), seed=st.integers(0, 99)
)
def test_the_bias_meets_any_prevalence(scale, prevalence, shift, seed):
    logit = (torch.randn(1, 200, generator=seeded(seed)) * scale + shift).double()
    bias = match_prevalence(logit, torch.tensor([prevalence], dtype=torch.float64))
    assert torch.sigmoid(logit + bias).mean().item() == pytest.approx(prevalence, abs=1e-4)


def test_a_low_temperature_makes_outcomes_certain():
    sharp = BNNPrior(BNNConfig(temperature=(0.01, 0.01))).sample(seeded(), 20, 200, 6)
    dull = BNNPrior(BNNConfig(temperature=(10.0, 10.0))).sample(seeded(), 20, 200, 6)
    assert sharp.truth.probabilities.amax(dim=2).mean() > 0.98
    spread = dull.truth.probabilities[..., 1].std(dim=1)
    assert spread.max() < 0.05


@pytest.mark.parametrize("config", [BNNConfig(clusters=(1, 1)), BNNPlanConfig(clusters=(1, 1))])
def test_features_that_are_not_informative_change_nothing(config):
    z = torch.randn(10, 100, 12, generator=seeded(1))
    _, _, truth = label(seeded(2), z, config)
    noise = torch.randn(10, 100, 12, generator=seeded(3))
    _, _, again = label(seeded(2), torch.where(truth.informative, z, noise), config)
    _, _, other = label(seeded(2), torch.where(truth.informative, noise, z), config)
    assert torch.allclose(truth.probabilities, again.probabilities, atol=1e-5)
    assert (truth.probabilities - other.probabilities).abs().mean() > 0.05


def test_clusters_have_their_own_informative_features():
    batch = BNNPrior(BNNConfig(clusters=(3, 3), informative=(2, 3))).sample(seeded(), 20, 300, 15)
    assert set(batch.truth.informative.sum(dim=2).unique().tolist()) == {2, 3}
    kinds = [len({tuple(row) for row in task.tolist()}) for task in batch.truth.informative]
    assert max(kinds) == 3 and min(kinds) >= 2


def test_rows_of_a_cluster_lie_together():
    """A row's nearest neighbours share its informative set more often than rows at random do."""
    config = BNNConfig(clusters=(3, 3), informative=(2, 2))
    batch = BNNPrior(config).sample(seeded(), 20, 400, 4)
    neighbour = torch.cdist(batch.x, batch.x).add(torch.eye(400) * 1e6).argmin(dim=2)
    sets = batch.truth.informative
    near = sets.gather(1, neighbour[..., None].expand_as(sets))
    together = (sets == near).all(dim=2).float().mean()
    apart = (sets == sets.roll(1, dims=1)).all(dim=2).float().mean()
    assert together > 0.85 and together > apart + 0.1


def test_one_cluster_means_one_informative_set():
    informative = BNNPrior(BNNConfig(clusters=(1, 1))).sample(seeded(), 20, 100, 9).truth.informative
    assert (informative == informative[:, :1]).all()


def test_an_interaction_acts_only_beyond_its_threshold():
    config = BNNPlanConfig(
        clusters=(1, 1),
        informative=(2, 2),
        interactions=(1, 1),
        threshold=(0.5, 0.5),
        interaction_share=(1e3, 1e3),
        outcome="continuous",
    )
    batch = BNNPlanPrior(config).sample(seeded(), 10, 400, 6)
    pair = batch.x[batch.truth.informative].view(10, 400, 2)
    product = pair.prod(dim=2)
    for task in range(10):
        below, above = product[task] <= 0.5, product[task] > 0.5
        mean = batch.truth.mean[task]
        assert mean[below].std() < 0.02
        correlation = torch.corrcoef(torch.stack((product[task][above], mean[above])))[0, 1]
        assert correlation.abs() > 0.99


@pytest.mark.parametrize(
    "kind, settings, name",
    [
        (BNNConfig, {"outcome": "ordinal"}, "outcome"),
        (BNNConfig, {"classes": (1, 2)}, "classes"),
        (BNNConfig, {"prevalence": (0.0, 0.5)}, "prevalence"),
        (BNNConfig, {"clusters": (0, 2)}, "clusters"),
        (BNNPlanConfig, {"informative": (1, 4)}, "informative"),
        (BNNPlanConfig, {"interactions": (0, 2)}, "interactions"),
    ],
)
def test_impossible_settings_are_refused_by_name(kind, settings, name):
    with pytest.raises(ConfigError, match=name):
        kind(**settings)

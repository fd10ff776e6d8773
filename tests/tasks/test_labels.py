"""The catalogues of the synthetic prior: each label mechanism is of its kind, and covariates hold what they promise."""

import pytest
import torch

from l2m_core.tasks import covariates, labels
from l2m_core.tasks.marginals import KINDS, observe_like_a_chart
from l2m_core.tasks.synthetic import SyntheticConfig, SyntheticPrior

KNOWN = [mechanism for mechanism in labels.MECHANISMS if mechanism is not labels.HIDDEN]
EACH = pytest.mark.parametrize("mechanism", KNOWN, ids=lambda function: function.__name__)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def score(mechanism, z, importance, classes: int = 3, seed: int = 1):
    return mechanism(generator(seed), z, importance, classes)


@EACH
def test_a_mechanism_reads_the_important_features_only(mechanism):
    z, moved = torch.randn(8, 200, 5, generator=generator()), torch.randn(8, 200, 5, generator=generator(9))
    importance = torch.tensor([1.0, 0.0, 0.6, 0.0, 0.0]).expand(8, 5)
    unread, read = (torch.where(which, moved, z) for which in (importance[0] == 0, importance[0] > 0))
    base = score(mechanism, z, importance)
    assert base.shape == (8, 200, 3) and base.isfinite().all()
    assert (base - score(mechanism, unread, importance)).abs().max() < 1e-4
    assert (base - score(mechanism, read, importance)).abs().amax((1, 2)).min() > 1e-3


def along_one_feature(mechanism, seed: int):
    """Scores of 400 rows that differ in the only important feature, in its order."""
    z = torch.linspace(-3, 3, 400)[None, :, None]
    return score(mechanism, z, torch.ones(1, 1), 2, seed)[0]


def test_trees_are_steps_and_waves_are_smooth_and_bend():
    for seed in range(20):
        steps = along_one_feature(labels.trees, seed)[:, 0].unique()
        assert len(steps) <= 6 * 4 + 1
        wave = along_one_feature(labels.waves, seed)
        assert wave.diff(dim=0).abs().max() < 0.1 * (wave.amax() - wave.amin())
    bends = [along_one_feature(labels.waves, seed)[:, 0].diff().sign().diff().abs().sum() > 0 for seed in range(20)]
    assert sum(bends) > 10


def test_the_linear_one_is_linear_and_the_network_is_not():
    bends = []
    for seed in range(10):
        assert along_one_feature(labels.linear, seed).diff(n=2, dim=0).abs().max() < 1e-5
        bends.append(along_one_feature(labels.network, seed).diff(n=2, dim=0).abs().max() > 3e-5)
    assert sum(bends) > 7


def test_interactions_are_pairs_that_act_only_together():
    """The sum of what each feature does alone is linear; what is left over is the pairs', and absent below zero."""
    z = torch.randn(1, 300, 2, generator=generator())
    pairs, opposed = 0, z[0].prod(-1) < 0
    for seed in range(20):
        alone = sum(score(labels.interactions, z * torch.eye(2)[i], torch.ones(1, 2), 1, seed) for i in range(2))
        together = (score(labels.interactions, z, torch.ones(1, 2), 1, seed) - alone).abs()[0, :, 0]
        assert together[opposed].max() < 1e-5  # x_i · x_j below every threshold
        pairs += int(together[~opposed].max() > 0.1)
    assert pairs > 5


def test_the_nearest_centre_s_class_has_the_highest_score():
    z = torch.randn(1, 500, 2, generator=generator())
    found = score(labels.centres, z, torch.ones(1, 2), 3)[0]
    share = (found[:, None] - found[None]).abs().sum(-1)  # rows near each other score alike
    near = (z[0, :, None] - z[0, None]).norm(dim=-1) < 0.05
    assert share[near].mean() < 0.1 * share.mean()
    # The borders between classes are straight: along any line a class is left once.
    line = torch.linspace(-4, 4, 300)[:, None] * torch.tensor([0.6, 0.8])
    winner = score(labels.centres, line[None], torch.ones(1, 2), 3)[0].argmax(-1)
    assert len(winner.unique_consecutive()) == len(winner.unique())


def test_a_clinical_score_adds_up_what_each_feature_counts_by_itself():
    """Of four rows that differ in two features, opposite corners sum alike; most curves are not straight."""
    z = torch.randn(1, 400, 2, generator=generator())
    left, right = torch.meshgrid(torch.arange(20), torch.arange(20), indexing="ij")
    z = torch.stack([z[0, left.flatten(), 0], z[0, right.flatten(), 1]], -1)[None]  # every value with every other
    bends = 0
    for seed in range(20):
        grid = score(labels.points, z, torch.ones(1, 2), 1, seed).view(20, 20)
        assert (grid + grid[:1, :1] - grid[:1] - grid[:, :1]).abs().max() < 1e-4
        bends += int(along_one_feature(labels.points, seed).diff(n=2, dim=0).abs().max() > 1e-3)
    assert bends > 15


def test_a_forest_is_steps_that_several_features_decide_together():
    z, apart = torch.randn(1, 300, 2, generator=generator()), 0
    for seed in range(20):
        steps = along_one_feature(labels.forest, seed)[:, 0].unique_consecutive()
        assert len(steps) <= 16 * 2**6
        alone = sum(score(labels.forest, z * torch.eye(2)[i], torch.ones(1, 2), 1, seed) for i in range(2))
        together = score(labels.forest, z, torch.ones(1, 2), 1, seed) - alone
        apart += int(together.std() > 0.1)
    assert apart > 10


def test_shares_that_are_not_named_are_none():
    named = SyntheticConfig(mechanism_weights=(0.0,) * 9 + (1.0,), covariate_weights=(0.0, 0.0, 0.0, 1.0))
    tasks = SyntheticPrior(named).sample(generator(4), 12, 100, 4)
    assert tasks.x.isfinite().all() and tasks.truth.probabilities.isfinite().all()
    short, padded = (
        SyntheticConfig(),
        SyntheticConfig(mechanism_weights=(*SyntheticConfig().mechanism_weights, 0.0, 0.0)),
    )
    first, second = (SyntheticPrior(config).sample(generator(5), 12, 100, 4) for config in (short, padded))
    assert torch.equal(first.x, second.x) and torch.equal(first.y, second.y)


def test_a_rugged_graph_has_heavier_tails_than_a_tame_one():
    tails = [
        (draw(generator(), 60, 400, 8).z.abs() > 4).float().mean() for draw in (covariates.rugged, covariates.graph)
    ]
    assert tails[0] > 2 * tails[1]


def test_some_features_are_copies_and_some_are_noise():
    z = torch.randn(400, 200, 1, generator=generator()).expand(-1, -1, 6).clone()  # six times the same
    seen = covariates.add_copies_and_noise(generator(1), z)
    centred = seen - seen.mean(1, keepdim=True)
    base = z[..., :1] - z[..., :1].mean(1, keepdim=True)
    like = (centred * base).sum(1) / (centred.norm(dim=1) * base.norm(dim=1))
    untouched, copied, noise = like > 0.9999, (like > 0.45) & (like < 0.9999), like.abs() < 0.3
    assert untouched.float().mean() > 0.5 and copied.float().mean() > 0.05 and noise.float().mean() > 0.05


@pytest.mark.parametrize("draw", covariates.KINDS)
def test_covariates_of_every_kind_have_unit_scale_and_hang_together(draw):
    z = draw(generator(), 60, 300, 6).z
    assert z.isfinite().all() and 0.6 < z.std(1).median() < 1.4
    correlation = torch.stack([torch.corrcoef(task.T) for task in z]).nan_to_num()
    beside = correlation[:, ~torch.eye(6, dtype=torch.bool)].abs().amax(1)
    assert (beside > 0.3).float().mean() > 0.3


def test_groups_of_patients_lie_apart():
    latent = covariates.clusters(generator(), 40, 300, 4)
    middles = latent.centres[..., None, :, :]
    nearest = (latent.z[:, :, None] - latent.centres[:, None]).norm(dim=-1).amin(-1).mean()
    anywhere = (latent.z[:, :, None] - middles[:, 0, None].flip(0)).norm(dim=-1).amin(-1).mean()
    assert nearest < anywhere


def test_a_chart_shows_every_kind_of_marginal():
    x, categorical = observe_like_a_chart(generator(), torch.randn(300, 400, 6, generator=generator(2)))
    columns = x.transpose(1, 2).flatten(0, 1)
    distinct = torch.tensor([len(column.unique()) for column in columns])
    whole = (columns == columns.round()).all(1)
    codes = categorical.flatten()
    spread = columns - columns.mean(1, keepdim=True)
    skew = (spread**3).mean(1) / (spread**2).mean(1).clamp_min(1e-9) ** 1.5
    modal = torch.tensor([float((column == column.mode().values).float().mean()) for column in columns])
    assert (distinct[codes] <= 12).all() and whole[codes].all()
    for kind, found in {
        "binary": distinct == 2,
        "ordinal": whole & (distinct >= 3) & (distinct <= 12) & ~codes,
        "categorical": codes,
        "skewed": (skew > 1.5) & (distinct > 300),
        "discretised": ~whole & (distinct > 12) & (distinct < 300),
        "mostly at zero": (modal > 0.3) & (distinct > 30),
        "as is": (distinct == 400) & (skew.abs() < 0.4),
    }.items():
        assert found.float().mean() > 0.02, kind
    assert len(KINDS) == 9


def test_an_indicator_can_decide_which_others_matter():
    """Without gates the same rows have other outcomes; the truth tells what each row's outcome reads."""

    def draw(share):
        config = SyntheticConfig(gated_share=share, max_classes=2, least_gain=-1.0)
        return SyntheticPrior(config).sample(generator(3), 24, 200, 5)

    with_gates, without = draw(1.0), draw(0.0)
    torch.testing.assert_close(with_gates.x, without.x)
    changed = (with_gates.truth.probabilities - without.truth.probabilities).abs().amax(2) > 1e-3
    assert changed.any(1).float().mean() > 0.8
    reads, plain = with_gates.truth.informative, without.truth.informative
    assert (plain == plain[:, :1]).all()  # one set for the whole task
    several = (reads != reads[:, :1]).any(2).any(1)
    assert several.float().mean() > 0.4
    assert reads.all(1).any(1).all()  # the indicator itself matters to every row

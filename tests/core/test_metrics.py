"""Scores against worked examples, independent implementations, and the properties that define them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.metrics import roc_auc_score

from l2m_core import metrics
from l2m_core.errors import ConfigError
from l2m_core.tabular.predictions import Gaussian


def draw(seed: int, n: int = 200, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.ones(classes), n)
    return p, (p.cumsum(1) < generator.random((n, 1))).sum(1)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_auroc_agrees_with_scikit_learn_ties_included(classes):
    p, y = draw(classes, classes=classes)
    p = np.round(p, 1)
    p /= p.sum(1, keepdims=True)
    expected = roc_auc_score(y, p[:, 1]) if classes == 2 else roc_auc_score(y, p, multi_class="ovr")
    assert metrics.auroc(p, y) == pytest.approx(expected)


def test_auroc_of_one_class_is_unknown_rather_than_wrong():
    assert np.isnan(metrics.auroc(np.array([[0.2, 0.8], [0.6, 0.4]]), np.array([1, 1])))


def test_auroc_leaves_out_a_class_without_rows():
    p = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    assert metrics.auroc(p, np.array([0, 1])) == 1.0


def test_log_loss_agrees_with_scikit_learn():
    p, y = draw(1)
    assert metrics.log_loss(p, y) == pytest.approx(sklearn_log_loss(y, p))


def test_brier_is_zero_for_the_truth_and_two_for_its_opposite():
    certain = np.eye(2)[[0, 1, 1]]
    assert metrics.brier(certain, np.array([0, 1, 1])) == 0
    assert metrics.brier(certain, np.array([1, 0, 0])) == 2


def test_losses_and_entropies_of_rows_are_those_of_the_distribution_of_either_kind():
    p, y = draw(1)
    np.testing.assert_allclose(metrics.row_losses(p, y), -np.log(p[np.arange(len(p)), y]))
    np.testing.assert_allclose(metrics.entropies(p), stats.entropy(p, axis=1))
    normal = Gaussian(np.zeros(2), np.array([1.0, 3.0]))
    np.testing.assert_allclose(metrics.row_losses(normal, [0.5, 1.0]), -stats.norm(0, [1, 3]).logpdf([0.5, 1.0]))
    np.testing.assert_allclose(metrics.entropies(normal), stats.norm(0, [1, 3]).entropy())


def test_what_was_held_impossible_costs_much_and_not_everything():
    certain = np.array([[1.0, 0.0]])
    assert metrics.row_losses(certain, [1])[0] == pytest.approx(-np.log(1e-12))
    assert metrics.entropies(certain)[0] == 0


@pytest.mark.parametrize("by", ["mass", "width"])
def test_ece_finds_a_constant_shift(by):
    generator = np.random.default_rng(0)
    true = generator.uniform(0.2, 0.6, 200_000)
    y = (generator.random(len(true)) < true).astype(int)
    said = true + 0.2
    assert metrics.ece(np.stack([1 - said, said], 1), y, by=by) == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("classes", [2, 4])
def test_ece_of_calibrated_probabilities_is_what_chance_predicts(classes):
    p, y = draw(5, 4000, classes)
    expected = metrics.ece_if_calibrated(p, np.random.default_rng(1))
    assert 0 < expected < 0.05
    assert metrics.ece(p, y) == pytest.approx(expected, abs=0.02)


def test_ece_by_chance_is_larger_when_predictions_share_patients():
    p, _ = draw(2, 100, 2)
    rows = np.tile(np.arange(100), 9)
    many = np.tile(p, (9, 1))
    alone = metrics.ece_if_calibrated(many, np.random.default_rng(0))
    shared = metrics.ece_if_calibrated(many, np.random.default_rng(0), rows=rows)
    assert shared > 1.5 * alone


def test_reliability_points_weigh_up_to_all_rows():
    p, y = draw(3, 300, 2)
    curve = metrics.reliability(p, y)
    assert curve.count.sum() == 300
    gap = np.abs(curve.predicted - curve.observed) @ curve.count / 300
    assert gap == pytest.approx(metrics.ece(p, y))


def test_bins_of_an_unknown_kind_are_refused_by_name():
    p, y = draw(3)
    with pytest.raises(ConfigError, match="'depth'"):
        metrics.ece(p, y, by="depth")


def test_crps_of_a_normal_distribution_is_its_closed_form():
    generator = np.random.default_rng(0)
    mean, std, y = generator.normal(size=50), generator.uniform(0.5, 2, 50), generator.normal(size=50)
    z = (y - mean) / std
    closed = std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert metrics.crps(Gaussian(mean, std), y, levels=2000) == pytest.approx(closed.mean(), rel=1e-3)
    assert metrics.crps(Gaussian(mean, std), y) == pytest.approx(closed.mean(), rel=2e-2)


def test_coverage_of_the_right_distribution_is_nominal_and_of_a_narrow_one_below():
    y = np.random.default_rng(0).normal(size=20_000)
    levels = np.array([0.5, 0.9])
    right = Gaussian(np.zeros(len(y)), np.ones(len(y)))
    narrow = Gaussian(np.zeros(len(y)), np.full(len(y), 0.5))
    assert metrics.coverage(right, y, levels) == pytest.approx(levels, abs=0.01)
    assert (metrics.coverage(narrow, y, levels) < levels - 0.1).all()


def test_rmse_of_a_known_error():
    assert metrics.rmse(Gaussian(np.zeros(2), np.ones(2)), np.array([3.0, -3.0])) == 3.0


@pytest.mark.parametrize(("pairs", "about"), [(4, 0.10), (10, 0.06), (40, 0.03)])
def test_few_pairs_seem_to_differ_more_often_than_they_should(pairs: int, about: float) -> None:
    """What docs/results/README.md says of verdicts that rest on few pairs: it should be 0.025."""
    generator = np.random.default_rng(0)
    found = [metrics.paired_interval(generator.normal(size=pairs), generator, draws=400).low > 0 for _ in range(2000)]
    assert abs(np.mean(found) - about) < 0.015


def test_paired_interval_covers_the_mean_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        interval = metrics.paired_interval(generator.normal(1.0, 1.0, 40), generator, draws=400)
        covered += interval.low <= 1.0 <= interval.high
    assert 175 <= covered <= 199


def test_drawing_groups_whole_widens_the_interval():
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 10)
    differences = generator.normal(size=10)[groups] + 0.01 * generator.normal(size=100)
    alone = metrics.paired_interval(differences, np.random.default_rng(1))
    whole = metrics.paired_interval(differences, np.random.default_rng(1), groups=groups)
    assert whole.mean == alone.mean
    assert whole.high - whole.low > 2 * (alone.high - alone.low)


def test_an_interval_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="no pairs"):
        metrics.paired_interval(np.array([]), np.random.default_rng(0))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_auroc_does_not_change_under_a_rising_transform(seed):
    p, y = draw(seed, 50, 2)
    bent = p[:, 1] ** 3
    same = metrics.auroc(np.stack([1 - bent, bent], 1), y)
    before = metrics.auroc(p, y)
    assert (np.isnan(same) and np.isnan(before)) or same == pytest.approx(before)

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


def misses(draws: np.ndarray, groups: np.ndarray | None = None) -> float:
    """Of data sets (R, n) whose true mean is 0, the share whose interval of 95% leaves it out."""
    return float(
        np.mean([not (i.low <= 0 <= i.high) for i in (metrics.paired_interval(d, groups=groups) for d in draws)])
    )


@pytest.mark.parametrize("units", [2, 5, 7, 17, 40])
def test_the_interval_misses_the_mean_as_rarely_as_it_says_of_few_units_too(units: int) -> None:
    assert misses(np.random.default_rng(0).normal(size=(2000, units))) == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize(("units", "most"), [(5, 0.13), (7, 0.13), (17, 0.10), (40, 0.08)])
def test_skewed_differences_cost_the_interval_a_little(units: int, most: float) -> None:
    assert 0.04 < misses(np.random.default_rng(0).exponential(size=(2000, units)) - 1) < most


@pytest.mark.parametrize("groups", [5, 7, 17, 40])
@pytest.mark.parametrize("sizes", [(4, 4), (1, 2, 4, 4, 8)])
def test_the_interval_of_groups_misses_as_rarely_as_it_says_though_groups_differ_in_size(
    groups: int, sizes: tuple[int, ...]
) -> None:
    generator = np.random.default_rng(0)
    member = np.repeat(np.arange(groups), np.resize(sizes, groups))
    draws = generator.normal(size=(2000, groups))[:, member] + generator.normal(size=(2000, len(member)))
    assert misses(draws, member) == pytest.approx(0.05, abs=0.02)


def test_one_group_that_is_half_of_all_pairs_does_not_make_the_interval_too_narrow() -> None:
    generator = np.random.default_rng(0)
    member = np.repeat(np.arange(17), [32] + 16 * [2])
    assert misses(generator.normal(size=(2000, 17))[:, member], member) < 0.065


def test_the_interval_of_single_pairs_is_the_printed_one_of_student_s_t() -> None:
    values = np.array([0.1, 0.4, -0.2, 0.6, 0.3])
    found = metrics.paired_interval(values, 0.9)
    expected = stats.t.interval(0.9, 4, values.mean(), stats.sem(values))
    assert (found.mean, found.low, found.high) == pytest.approx((values.mean(), *expected), abs=1e-5)
    assert metrics.paired_interval(values, 0.9, groups=np.array(list("edcba"))) == found


def test_groups_of_equal_size_have_the_interval_of_their_means() -> None:
    values = np.random.default_rng(0).normal(size=(6, 4))
    whole = metrics.paired_interval(values.ravel(), groups=np.repeat(np.arange(6), 4))
    means = metrics.paired_interval(values.mean(1))
    assert (whole.low, whole.high) == pytest.approx((means.low, means.high), abs=1e-6)


@pytest.mark.parametrize(
    ("probability", "degrees", "table"),
    [(0.975, 1, 12.706), (0.975, 4, 2.776), (0.975, 19, 2.093), (0.995, 9, 3.250), (0.95, 199, 1.6525), (0.5, 7, 0.0)],
)
def test_quantiles_are_those_of_the_printed_table(probability: float, degrees: int, table: float) -> None:
    assert metrics.student_quantile(probability, degrees) == pytest.approx(table, abs=2e-3)


def test_pairs_that_belong_together_widen_the_interval() -> None:
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 10)
    differences = generator.normal(size=10)[groups] + 0.01 * generator.normal(size=100)
    alone = metrics.paired_interval(differences)
    whole = metrics.paired_interval(differences, groups=groups)
    assert whole.mean == alone.mean
    assert whole.high - whole.low > 2 * (alone.high - alone.low)


@pytest.mark.parametrize(("differences", "groups"), [([0.25], None), ([0.2, 0.3], ["ckd", "ckd"])])
def test_one_unit_has_no_interval_and_says_so(differences: list[float], groups: list[str] | None) -> None:
    found = metrics.paired_interval(np.array(differences), groups=None if groups is None else np.array(groups))
    assert (found.low, found.high) == (-np.inf, np.inf)
    assert str(found) == f"{found}" == "0.2500 (too few for an interval)"
    assert f"{found:.2f}" == "0.25 (too few for an interval)"


def test_an_interval_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="no pairs"):
        metrics.paired_interval(np.array([]))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_auroc_does_not_change_under_a_rising_transform(seed):
    p, y = draw(seed, 50, 2)
    bent = p[:, 1] ** 3
    same = metrics.auroc(np.stack([1 - bent, bent], 1), y)
    before = metrics.auroc(p, y)
    assert (np.isnan(same) and np.isnan(before)) or same == pytest.approx(before)

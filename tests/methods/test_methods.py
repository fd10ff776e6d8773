"""What every method of acquisition must do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from l2m_core.errors import CohortError, ConfigError
from l2m_core.methods import METHODS, Gaussian, Method, make_method
from l2m_core.methods.networks import Schedule
from l2m_core.metrics import row_losses
from l2m_core.tabular.trees import TreeSettings
from tests.methods.cohorts import BASELINE, STRONG, learnable

KINDS = ("binary", "multiclass", "continuous")
SHORT = Schedule(epochs=30, plateau=5, patience=10, least_steps=6)
TREES = {"grid": (TreeSettings(depth=2, rounds=40, features=1.0),), "n_folds": 2}
LINES = {"strengths": (0.1, 1.0), "n_folds": 3}
QUICK = {
    "aaco": {"pretraining": SHORT},
    "mlp_random": {"schedule": Schedule(epochs=80)},
    "gdfs": {"pretraining": SHORT, "schedule": SHORT},
    "dime": {"pretraining": SHORT, "schedule": SHORT},
    "dqn": {"pretraining": SHORT, "episodes": 40, "updates": 4},
    "sefa": {"pretraining": SHORT, "training_samples": 20, "samples": 50},
    "boosting": TREES,
    "boosting_voi": TREES,
    "logistic": LINES,
    "logistic_voi": LINES,
}
"""Settings that make the tests fast and change no behaviour."""
ONCE = Schedule(epochs=2)
HASTY = QUICK | {
    "aaco": {"pretraining": ONCE, "sets": 8},
    "mlp_random": {"schedule": ONCE},
    "gdfs": {"pretraining": ONCE, "schedule": ONCE},
    "dime": {"pretraining": ONCE, "schedule": ONCE, "exploration": (1.0, 0.2)},
    "dqn": {"pretraining": ONCE, "episodes": 5, "updates": 2},
    "sefa": {"pretraining": ONCE, "training_samples": 5, "samples": 10},
}
"""For tests that need a method to be trained, but not well."""
MINE = ("aaco", "boosting", "boosting_voi", "dime", "dqn", "gdfs", "logistic", "logistic_voi", "mlp_random", "sefa")
_fitted: dict[tuple[str, str], Method] = {}


def quick(name: str) -> Method:
    return make_method(name, **QUICK[name])


def hasty(name: str, seed: int = 0) -> Method:
    return make_method(name, seed=seed, **HASTY[name])


def fitted(name: str, kind: str) -> Method:
    """Fitted once for all tests that only ask."""
    if (name, kind) not in _fitted:
        _fitted[name, kind] = quick(name).fit(learnable(kind))
    return _fitted[name, kind]


def numbers(prediction) -> np.ndarray:
    return np.stack([prediction.mean, prediction.std], 1) if isinstance(prediction, Gaussian) else prediction


def some_queries(kind: str = "binary", rows: int = 30):
    table = learnable(kind, rows=rows, missing=0.0, seed=7)
    a = np.random.default_rng(1).random(table.x.shape) < 0.4
    return table, a


def test_every_method_is_known_by_its_name():
    assert set(MINE) <= set(METHODS)
    assert all(isinstance(make_method(name), Method) for name in MINE)


def test_an_unknown_method_or_setting_is_refused_by_name():
    with pytest.raises(ConfigError, match="'gdsf'.*gdfs"):
        make_method("gdsf")
    with pytest.raises(ConfigError, match="colour"):
        make_method("gdfs", colour="red")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MINE)
def test_a_prediction_is_a_distribution_over_the_outcome(name, kind):
    table, a = some_queries(kind)
    prediction = fitted(name, kind).predict(table.x, a)
    if kind == "continuous":
        assert isinstance(prediction, Gaussian)
        assert prediction.mean.shape == prediction.std.shape == (30,)
        assert np.isfinite(prediction.mean).all() and (prediction.std > 0).all()
    else:
        assert prediction.shape == (30, table.n_classes)
        assert (prediction >= 0).all()
        np.testing.assert_allclose(prediction.sum(1), 1, atol=1e-6)


@pytest.mark.parametrize("name", MINE)
def test_a_blocked_feature_is_never_suggested(name):
    table, a = some_queries()
    scores = fitted(name, "binary").rank(table.x, a)
    assert scores.shape == a.shape
    assert np.isneginf(scores[a]).all()
    assert np.isneginf(scores[:, BASELINE]).all()
    free = ~a & table.acquirable
    assert np.isfinite(scores[free]).all()


@pytest.mark.parametrize("name", MINE)
def test_a_test_asked_for_in_vain_tells_nothing_and_is_not_suggested_again(name):
    table, a = some_queries()
    vain = a.copy()
    vain[:, STRONG] = True
    x = table.x.copy()
    x[:, STRONG] = np.nan
    without = a.copy()
    without[:, STRONG] = False
    method = fitted(name, "binary")
    np.testing.assert_allclose(method.predict(x, vain), method.predict(x, without), atol=1e-6)
    assert np.isneginf(method.rank(x, vain)[:, STRONG]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MINE)
def test_a_value_that_is_not_acquired_never_matters(name, kind):
    table, a = some_queries(kind)
    method = fitted(name, kind)
    for other in (np.nan, 1e6, -3.0, np.inf):
        x = np.where(a, table.x, other).astype(np.float32)
        np.testing.assert_allclose(numbers(method.predict(x, a)), numbers(method.predict(table.x, a)), atol=1e-6)
        np.testing.assert_allclose(method.rank(x, a), method.rank(table.x, a), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MINE)
def test_it_learns_more_than_the_base_rate(name, kind):
    context, test = learnable(kind), learnable(kind, rows=200, missing=0.0, seed=5)
    if kind == "continuous":
        base = Gaussian(np.full(200, context.y.mean()), np.full(200, context.y.std()))
    else:
        base = np.tile(np.bincount(context.y, minlength=context.n_classes) / len(context.y), (200, 1))
    everything = np.ones(test.x.shape, dtype=bool)
    loss = row_losses(fitted(name, kind).predict(test.x, everything), test.y).mean()
    assert loss < row_losses(base, test.y).mean() - 0.2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in MINE if name != "mlp_random"])
def test_the_feature_that_decides_most_is_asked_for_first(name, kind):
    test = learnable(kind, rows=50, missing=0.0, seed=5)
    a = np.zeros(test.x.shape, dtype=bool)
    a[:, BASELINE] = True
    first = fitted(name, kind).rank(test.x, a).argmax(1)
    assert (first == STRONG).mean() > 0.7


@pytest.mark.parametrize("name", MINE)
def test_the_same_seed_gives_the_same_answers_and_leaves_global_randomness_alone(name):
    context = learnable("binary", rows=60)
    test, a = some_queries()
    torch.manual_seed(3)
    np.random.seed(3)
    untouched = torch.get_rng_state(), np.random.get_state()[1].copy()
    one, two = hasty(name, seed=4).fit(context), hasty(name, seed=4).fit(context)
    np.testing.assert_array_equal(one.predict(test.x, a), two.predict(test.x, a))
    np.testing.assert_array_equal(one.rank(test.x, a), two.rank(test.x, a))
    assert torch.equal(untouched[0], torch.get_rng_state())
    np.testing.assert_array_equal(untouched[1], np.random.get_state()[1])


@pytest.mark.parametrize("name", MINE)
def test_the_order_of_the_context_rows_does_not_matter(name):
    context = learnable("binary", rows=60)
    shuffled = context.rows(np.random.default_rng(9).permutation(60))
    test, a = some_queries()
    one, two = hasty(name).fit(context), hasty(name).fit(shuffled)
    np.testing.assert_array_equal(one.predict(test.x, a), two.predict(test.x, a))
    np.testing.assert_array_equal(one.rank(test.x, a), two.rank(test.x, a))


@pytest.mark.parametrize("name", MINE)
def test_fitting_again_forgets_the_earlier_cohort(name):
    first, second = learnable("binary", rows=60), learnable("multiclass", rows=60, seed=2)
    test, a = some_queries()
    again = hasty(name).fit(first).fit(second)
    np.testing.assert_array_equal(again.predict(test.x, a), hasty(name).fit(second).predict(test.x, a))


@pytest.mark.parametrize("name", MINE)
def test_a_column_never_recorded_and_a_class_never_seen_are_borne(name):
    context = learnable("multiclass", rows=60)
    x = context.x.copy()
    x[:, 3] = np.nan
    context = replace(context, x=x, n_classes=4)
    test, a = some_queries("multiclass")
    method = hasty(name).fit(context)
    prediction = method.predict(test.x, a)
    assert prediction.shape == (30, 4)
    assert (prediction > 0).all()
    assert not np.isnan(method.rank(test.x, a)).any()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MINE)
def test_a_class_with_a_single_row_is_borne(name, n_classes):
    """Of three classes, the last has no row at all."""
    context = learnable("binary", rows=30)
    context = replace(context, y=(np.arange(30) == 11).astype(np.int64), n_classes=n_classes)
    test, a = some_queries()
    method = hasty(name).fit(context)
    prediction = method.predict(test.x, a)
    assert prediction.shape == (30, n_classes) and (prediction > 0).all()
    np.testing.assert_allclose(prediction.sum(1), 1, atol=1e-6)
    assert np.isfinite(method.rank(test.x, a)[~a & test.acquirable]).all()


@pytest.mark.parametrize("name", MINE)
def test_an_outcome_without_variation_is_refused(name):
    context = learnable("binary", rows=30)
    with pytest.raises(CohortError, match="same in every row"):
        hasty(name).fit(replace(context, y=np.zeros(30, dtype=np.int64)))


@pytest.mark.parametrize("name", MINE)
def test_an_infinite_value_is_refused_with_its_column(name):
    context = learnable("binary", rows=30)
    x = context.x.copy()
    x[4, 2] = np.inf
    with pytest.raises(CohortError, match="Column 2"):
        hasty(name).fit(replace(context, x=x))

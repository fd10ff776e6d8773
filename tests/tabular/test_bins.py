"""Trees of binned columns are those that scikit-learn would learn from the columns themselves."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from l2m_core.tabular.bins import MOST_BINS, Bins


@pytest.mark.parametrize("decimals", [0, 1, 7])  # fewer values than bins, about as many, and one for each row
def test_trees_of_bins_answer_as_trees_of_the_columns(decimals: int) -> None:
    draw = np.random.default_rng(3)
    x = draw.normal(size=(900, 4)).round(decimals).astype(np.float32)
    x[draw.random(x.shape) < 0.3] = np.nan
    x[:, 3] = draw.integers(0, 5, 900)  # codes of levels
    y = np.nan_to_num(x[:, 0]) + draw.normal(size=900) > x[:, 3] / 2 - 1
    old, new = x[:600], x[600:]
    weights = np.full(600, 1 / 6)
    is_code = np.arange(4) == 3
    choices = {"max_bins": MOST_BINS, "max_iter": 40, "categorical_features": is_code, "early_stopping": False}
    bins = Bins(old, weights, is_code)
    plain = HistGradientBoostingClassifier(**choices).fit(old, y[:600], sample_weight=weights)
    binned = HistGradientBoostingClassifier(**choices).fit(bins.of(old), y[:600], sample_weight=weights)
    assert (binned.predict_proba(bins.of(old)) == plain.predict_proba(old)).all()
    # But for a new value in a bin that had none.
    assert (binned.predict_proba(bins.of(new)) == plain.predict_proba(new)).all(1).mean() > 0.98


def test_what_is_not_known_and_codes_stay_as_they_are() -> None:
    x = np.array([[0.5, 7.0], [np.nan, 3.0], [2.5, 7.0]])
    binned = Bins(x, np.ones(3), np.array([False, True])).of(x)
    np.testing.assert_array_equal(binned, [[0, 7], [np.nan, 3], [1, 7]])


def test_no_bin_is_without_rows() -> None:
    draw = np.random.default_rng(0)
    x = draw.integers(0, 70, (400, 1)).astype(np.float64)
    found = np.unique(Bins(x, np.full(400, 0.25), np.array([False])).of(x))
    np.testing.assert_array_equal(found, np.arange(len(found)))

"""Why the model says what it says of one patient: what drives the answer, and how far other cohorts would move it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import pandas as pd

from l2m_core.answering.engine import Answer, ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.errors import InputError

# Answers from n rows scatter by about 1 / n^SCATTER. What is estimated from them alone would by 1 / √n, but of fewer rows the
# model makes less: `python -m train bands` has samples of some of the rows beside new cohorts of as many as there are.
# By its page bands of a tenth of 400 and of 1,000 rows are rather too wide so, and would be too narrow by the root.
SCATTER = 0.25


@dataclass(frozen=True)
class Driver:
    """A known value, and how much the answer depends on it."""

    feature: str
    change: float
    """Total variation between the posterior with and without it (classes), or the shift of the mean in standard deviations
    (continuous)."""
    gain_without: float
    """The gain head's value for the suggested test, had this value not been known."""


def drivers_of(memory: ConditionedModel, x: np.ndarray, answer: Answer, suggestion: str | None) -> tuple[Driver, ...]:
    """The known values, most influential first: each is left out in turn. x: (1, d); answer: the model's for x."""
    known = np.flatnonzero(~np.isnan(x[0]))
    if not len(known):
        return ()
    without, now = memory.answer(without_each(x)), answer.prediction
    if isinstance(now, np.ndarray):
        change = 0.5 * np.abs(without.prediction - now).sum(-1)
    else:
        change = np.abs(without.prediction.mean - now.mean) / now.std
    names = memory.cohort.names
    gain = np.full(len(known), np.nan) if suggestion is None else without.gain[:, names.index(suggestion)]
    found = map(Driver, [names[column] for column in known], change.tolist(), gain.tolist())
    return tuple(sorted(found, key=lambda driver: -driver.change))


def without_each(x: np.ndarray) -> np.ndarray:
    """(known features, d): one row for each known value, with that value left out. x: (1, d)"""
    known = np.flatnonzero(~np.isnan(x[0]))
    left_out = np.repeat(x, len(known), axis=0)
    left_out[np.arange(len(known)), known] = np.nan
    return left_out


def resampled_band(
    memory: ConditionedModel, x: np.ndarray, answer: Answer, resampled: Sequence[ConditionedModel], level: float
) -> pd.DataFrame:
    """For each class (or the mean) low, value, high: where the posterior lies under a share `level` of other cohorts."""
    if not resampled:
        raise InputError("There are no resampled cohorts to make a band of; give those of memory.resampled().")
    if not (isinstance(level, Real) and 0 < level < 1):
        raise InputError(f"level is {level!r}; it must lie strictly between 0 and 1.")
    value = shown_of(answer.prediction)[0]  # (K,)
    drawn = np.stack([shown_of(other.answer(x).prediction)[0] for other in resampled])  # (count, K)
    low, high = band_of(drawn, value, [other.rows_read / memory.rows_read for other in resampled], level)
    names = ["mean"]
    if isinstance(answer.prediction, np.ndarray):
        # Moved towards the whole cohort's answer, a chance may leave its range.
        names, low, high = list(memory.classes), low.clip(0.0, 1.0), high.clip(0.0, 1.0)
    return pd.DataFrame({"outcome": names, "low": low, "value": value, "high": high})


def shown_of(prediction: np.ndarray | Predictive) -> np.ndarray:
    """(n, K) what a band is drawn around: the chances of K classes, or the mean of a continuous outcome."""
    return prediction if isinstance(prediction, np.ndarray) else prediction.mean[:, None]


def band_of(
    drawn: np.ndarray, value: np.ndarray, share: Sequence[float], level: float, scatter: float = SCATTER
) -> tuple[np.ndarray, np.ndarray]:
    """Where a share `level` of other cohorts' answers lies; it holds `value`, the whole cohort's, wherever the others lie.

    drawn: (count, ...) answers of samples, each of which has a share of the rows. Answers of fewer rows scatter more, so they
    move towards each other, and to the answer of the whole cohort, which has seen more than any of them.
    """
    narrower = np.minimum(share, 1.0).reshape(-1, *[1] * value.ndim) ** scatter
    if (narrower < 1).any():
        drawn = value + narrower * (drawn - drawn.mean(0))
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.minimum(low, value), np.maximum(high, value)

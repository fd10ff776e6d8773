"""Why the model says what it says of one patient: what drives the answer, and how far other cohorts would move it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import pandas as pd

from l2m_core.answering.engine import Answer, ConditionedModel
from l2m_core.errors import InputError

# Answers from n rows scatter by about 1 / n^SCATTER. What is estimated from them alone would by 1 / √n, but of fewer rows the
# model makes less. Answers of new cohorts of 400 to 2,000 rows, from mechanisms of five kinds, scattered 0.7 to 1.2 times as
# much as samples of a tenth to a half of the rows tell (1.7 where a tenth was 40 rows); with 1 / √n 0.8 to 1.9 times (3.0), so
# that the bands of large cohorts were mostly too narrow (a script outside this project).
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
    answers = [other.answer(x).prediction for other in resampled]
    edge = (1 - level) / 2
    if isinstance(answer.prediction, np.ndarray):
        names, value = list(memory.classes), answer.prediction[0]
    else:
        names, value = ["mean"], answer.prediction.mean
    drawn = np.stack([other[0] if isinstance(other, np.ndarray) else other.mean for other in answers])
    drawn = _as_of_whole_cohorts(drawn, value, [other.rows_read / memory.rows_read for other in resampled])
    if isinstance(answer.prediction, np.ndarray):
        drawn = drawn.clip(0.0, 1.0)
    low, high = np.quantile(drawn, [edge, 1 - edge], axis=0)
    # The band holds the value itself, even where no resampled cohort reaches it.
    return pd.DataFrame(
        {"outcome": names, "low": np.minimum(low, value), "value": value, "high": np.maximum(high, value)}
    )


def _as_of_whole_cohorts(drawn: np.ndarray, value: np.ndarray, share: Sequence[float]) -> np.ndarray:
    """(count, K) answers of samples with a share of the cohort's rows → as samples of as many rows as it has would scatter.

    Answers of smaller samples scatter more, so they move towards each other, and to the answer of the whole cohort, which has
    seen more than any of them.
    """
    narrower = np.minimum(share, 1.0)[:, None] ** SCATTER  # (count, 1)
    if (narrower == 1).all():
        return drawn
    return value + narrower * (drawn - drawn.mean(0))

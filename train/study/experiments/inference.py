"""From paired differences to an interval and a power over independent units, corrected for the number of claims: Student's t of
the mean (`l2m_core.metrics.paired_interval`), or signed ranks of the middle where no mean is stable."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from l2m_core.metrics import Interval

CLAIMS = 12
"""Experiments that test a claim of the study."""
LEVEL = 1 - 0.05 / CLAIMS
"""Of every interval (Bonferroni): the chance that any claim is seen where none is true is at most 5%, or half of that, as only
one side counts. The parts of one claim need no more, since all of them must hold."""
POWER = 0.8
SMALLEST = 0.005
"""Nats of log loss: the smallest difference worth seeing, where the study states none."""
NONE_STATED = f"None is stated in numbers; the smallest difference worth seeing is {SMALLEST:g} nats."
"""The effect of a claim that the study puts no number to."""
ONE_ERROR = 2 * NormalDist().cdf(1.0) - 1
"""Level of an interval of one standard error each way."""


def rank_interval(values: np.ndarray, level: float = LEVEL) -> Interval:
    """Of the middle of independent values (n,), two or more: the Hodges-Lehmann estimate, and the values that Wilcoxon's
    signed-rank test does not refuse. One value, however far out, moves it no further than any other."""
    values = np.asarray(values, dtype=np.float64)
    # Walsh averages: the means of all pairs, each value with itself among them. How many of them lie above m is the statistic of
    # the test that the middle is m, so the interval ends where too few are left outside.
    first, second = np.triu_indices(len(values))
    walsh = np.sort((values[first] + values[second]) / 2)
    end = averages_outside(len(values), level)
    if end == 0:  # so few values refuse nothing
        return Interval(float(np.median(walsh)), -math.inf, math.inf)
    return Interval(float(np.median(walsh)), float(walsh[end - 1]), float(walsh[-end]))


@lru_cache(maxsize=1024)
def averages_outside(n: int, level: float) -> int:
    """At which Walsh average, counted from either end, the interval of n values ends; 0: no interval holds so surely."""
    # The statistic is the sum of those of the ranks 1 … n whose sign is positive, each with a chance of one half.
    chances = np.zeros(n * (n + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, n + 1):
        chances[rank:] = (chances[rank:] + chances[:-rank]) / 2
        chances[:rank] /= 2
    return int(np.searchsorted(2 * np.cumsum(chances), 1 - level, side="right"))


def units_needed(values: np.ndarray, effect: float, level: float = LEVEL) -> int:
    """How many units would show a mean of `effect` four times in five, were they to scatter as these do."""
    return _units(float(np.std(values, ddof=1)), effect, level)


def units_needed_by_rank(values: np.ndarray, effect: float, level: float = LEVEL) -> int:
    """The same of a middle. The scatter is read off an interval of about one standard error each way, where there is one."""
    found = rank_interval(values, ONE_ERROR)
    half = (found.high - found.low) / 2
    return _units(
        half * math.sqrt(len(values)) if math.isfinite(half) else float(np.std(values, ddof=1)), effect, level
    )


def _units(scatter: float, effect: float, level: float) -> int:
    normal = NormalDist()
    reach = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(POWER)
    return max(2, math.ceil((reach * scatter / effect) ** 2))

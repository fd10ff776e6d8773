"""From paired differences to an interval and a power: t over independent units, corrected for the number of claims."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from l2m_core.metrics import Interval

CLAIMS = 11
"""Experiments that test a claim of the study."""
LEVEL = 1 - 0.05 / CLAIMS
"""Of every interval (Bonferroni): the chance that any claim is seen where none is true is at most 5%, or half of that, as only
one side counts. The parts of one claim need no more, since all of them must hold."""
POWER = 0.8
SMALLEST = 0.005
"""Nats of log loss: the smallest difference worth seeing, where the study states none."""
GRID = 200_001


def t_interval(values: np.ndarray, level: float = LEVEL) -> Interval:
    """Of the mean of independent values (n,), two or more."""
    values = np.asarray(values, dtype=np.float64)
    half = student_quantile((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    mean = float(values.mean())
    return Interval(mean, mean - half, mean + half)


@lru_cache(maxsize=1024)
def student_quantile(probability: float, degrees: int) -> float:
    """Of Student's t. With t = √ν tan θ its density is proportional to cos θ to the power ν - 1."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, GRID)
    density = np.cos(angle).clip(0) ** (degrees - 1)
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return math.sqrt(degrees) * math.tan(float(np.interp(probability, cumulative / cumulative[-1], angle)))


def units_needed(values: np.ndarray, effect: float, level: float = LEVEL) -> int:
    """How many units would show a mean of `effect` four times in five, were they to scatter as these do."""
    normal = NormalDist()
    reach = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(POWER)
    return max(2, math.ceil((reach * float(np.std(values, ddof=1)) / effect) ** 2))

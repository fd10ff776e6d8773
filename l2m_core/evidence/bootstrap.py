"""Means and scores with bootstrap intervals over patients. Rows of one patient are drawn together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

LEVEL = 0.95
DRAWN_AT_ONCE = 4_000_000  # row weights held at a time


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95% interval; NaN where the rows cannot tell."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bootstrap:
    """Draws patients with replacement. Every figure sees the same samples, so that differences between figures are
    differences over the same patients."""

    patient: np.ndarray
    """(n,) which patient each row is of, from 0."""
    draws: int
    seed: int

    def estimate(self, figure: Callable[[np.ndarray], np.ndarray]) -> list[Estimate]:
        """figure: weights (m, n) → (m, S) figures; one estimate for each of the S."""
        # A sample is a weight for each row: how often its patient was drawn.
        n = len(self.patient)
        value = figure(np.ones((1, n)))[0]
        generator = np.random.default_rng([self.seed, 4])
        patients = int(self.patient.max()) + 1
        drawn, left = [], self.draws
        while left:
            # In pieces: weights are (draws, n), which would be gigabytes for a long cohort at once.
            size = min(left, max(1, DRAWN_AT_ONCE // n))
            counts = generator.multinomial(patients, np.full(patients, 1 / patients), size)
            drawn.append(figure(counts[:, self.patient].astype(np.float64)))
            left -= size
        samples = np.concatenate(drawn)
        edge = (1 - LEVEL) / 2
        return [_estimate(value[s], samples[:, s], edge) for s in range(len(value))]

    def mean(self, values: np.ndarray) -> list[Estimate]:
        """values: (n, S)"""
        return self.estimate(lambda weights: weights @ values / weights.sum(1, keepdims=True))


def _estimate(value: float, samples: np.ndarray, edge: float) -> Estimate:
    # A sample that lacks a class has no AUROC; the others still give an interval.
    known = samples[np.isfinite(samples)]
    if not np.isfinite(value) or len(known) < 2:
        return Estimate(float(value), float("nan"), float("nan"))
    low, high = np.quantile(known, [edge, 1 - edge])
    return Estimate(float(value), float(low), float(high))


def reach(level: float) -> float:
    """How many standard deviations the central interval of a normal distribution reaches to either side."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def weighted_auroc(p: np.ndarray, y: np.ndarray, weights: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """(m,) for weights (m, n): `metrics.auroc` of rows counted so often, over the pairs within a fold. p: (n, K).

    Each fold is asked of another context. Across folds, patients of whom nothing is known would be told apart by which
    context they met, mostly the wrong way: the context of a fold that has more of a class has fewer of it.
    """
    if p.shape[1] == 2:
        return _weighted_area(p[:, 1], y == 1, weights, fold)
    areas = np.stack([_weighted_area(p[:, k], y == k, weights, fold) for k in range(p.shape[1])])
    known = np.isfinite(areas)
    total = np.where(known, areas, 0.0).sum(0)
    return np.where(known.any(0), total / np.maximum(known.sum(0), 1), np.nan)


def _weighted_area(score: np.ndarray, positive: np.ndarray, weights: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """(m,) share of (positive, negative) pairs of a fold in which the positive scores higher; ties count half."""
    parts = [fold == number for number in np.unique(fold)]
    counted = [_pairs(score[part], positive[part], weights[:, part]) for part in parts]
    won, pairs = np.sum(counted, axis=0)  # (m,) each
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pairs > 0, won / pairs, np.nan)


def _pairs(score: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m,) pairs in which the positive scores higher, and all of them."""
    order = np.argsort(score, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(score[order]) > 0])  # where each run of equal scores begins
    ordered = weights[:, order]
    positives = np.add.reduceat(ordered * positive[order], starts, axis=1)  # (m, runs)
    negatives = np.add.reduceat(ordered * ~positive[order], starts, axis=1)
    below = negatives.cumsum(1) - negatives / 2  # negatives of lower scores, and half of those of the same score
    return (positives * below).sum(1), positives.sum(1) * negatives.sum(1)


def wilson_interval(count: np.ndarray, n: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of shares count / n."""
    z = reach(level)
    n = np.maximum(np.asarray(n, dtype=np.float64), 1e-9)
    share = np.asarray(count) / n
    # Wilson's interval stays within 0 and 1 and has width also where a share is 0 or 1, unlike the normal one.
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)

"""Tasks whose conditional mutual informations are known exactly: a few binary features, every combination counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from l2m_core.acquire.rollout import Rollout
from l2m_core.cohort import Cohort
from train.study.evaluation.cells import Trial


@dataclass(frozen=True)
class ExactTask:
    """combinations: (2^d, d); weight: (2^d,) their probabilities; positive: (2^d,) p(y = 1 | combination)."""

    trial: Trial
    combinations: np.ndarray
    weight: np.ndarray
    positive: np.ndarray

    def belief(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(n,) p(y = 1 | x⊙a)"""
        fits = _fits(self.combinations, x, a)
        return (fits @ (self.weight * self.positive)) / (fits @ self.weight)

    def information(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(n, d) I(y; x_j | x⊙a) in nats; 0 where j is known."""
        fits = _fits(self.combinations, x, a)
        now = _entropy(self.belief(x, a))
        left = np.zeros(x.shape)
        for value in (0, 1):
            having = (self.combinations == value).astype(np.float64)  # (2^d, d)
            chance = (fits * self.weight) @ having
            positive = (fits * self.weight * self.positive) @ having
            total = (fits @ self.weight)[:, None]
            left += np.where(chance > 0, chance / total * _entropy(positive / np.maximum(chance, 1e-300)), 0.0)
        return np.where(a, 0.0, np.maximum(now[:, None] - left, 0.0))

    def regret(self, rollout: Rollout) -> list[float]:
        """By step: the information of the best feature left minus that of the one chosen, mean over rows."""
        x = self.trial.x
        a = ~np.isnan(x) & ~self.trial.context.acquirable
        rows, steps = np.arange(len(x)), []
        for chosen in rollout.actions.T:
            asked = chosen >= 0
            information = self.information(x, a)
            open_cells = ~np.isnan(x) & ~a
            best = np.where(open_cells, information, 0.0).max(1)
            steps.append(float((best - information[rows, np.maximum(chosen, 0)])[asked].mean()) if asked.any() else 0.0)
            a = a.copy()
            a[rows[asked], chosen[asked]] = True
        return steps


def draw_exact(seed: int, features: int = 8, context: int = 200, test_rows: int = 60) -> ExactTask:
    """Some features matter, some of them only together; the others are noise."""
    generator = np.random.default_rng([20_260_101, seed])
    combinations = (np.arange(2**features)[:, None] >> np.arange(features)) & 1
    share = generator.uniform(0.15, 0.85, features)
    weight = np.where(combinations, share, 1 - share).prod(1)
    matters = generator.permutation(features)[: generator.integers(2, max(3, features // 2) + 1)]
    centred = combinations - share
    logit = centred[:, matters] @ generator.normal(0, 2.5, len(matters))
    first, second = generator.permutation(matters)[:2]
    logit = logit + generator.normal(0, 4) * centred[:, first] * centred[:, second] + generator.normal(0, 0.7)
    positive = 1 / (1 + np.exp(-logit))
    picked = generator.choice(len(weight), context + test_rows, p=weight / weight.sum())
    y = (generator.random(len(picked)) < positive[picked]).astype(np.int64)
    if len(np.unique(y[:context])) < 2:
        y[0] = 1 - y[0]  # a context with one class only would be no task
    x = combinations[picked].astype(np.float32)
    cohort = Cohort.from_arrays(x, y, kind="binary", classes=("no", "yes"), name=f"exact {seed}")
    informative = np.tile(np.isin(np.arange(features), matters), (test_rows, 1))
    trial = Trial(cohort.rows(slice(0, context)), x[context:], y[context:], informative)
    return ExactTask(trial, combinations, weight, positive)


def _entropy(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return -(p * np.log(p) + (1 - p) * np.log(1 - p))


def _fits(combinations: np.ndarray, x: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(n, 2^d) float: 1 where a combination agrees with what is known of a row."""
    agrees = (combinations[None] == np.nan_to_num(x)[:, None]) | ~a[:, None]
    return agrees.all(2).astype(np.float64)

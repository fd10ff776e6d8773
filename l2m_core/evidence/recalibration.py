"""A recalibration of probabilities by what happened: p′(k) ∝ exp(shift_k + slope · log p(k)).

For two classes this is Platt's: log odds′ = slope · log odds + shift. A slope below 1 says that predictions are too extreme;
a shift, that a class is foreseen too often or too seldom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

PENALTY = 1e-3
"""On the squared distance from leaving everything as it is, so that rows of one class only move nothing far."""
SMALLEST = 1e-6
STEPS = 100


@dataclass(frozen=True)
class Recalibration:
    shift: tuple[float, ...]
    """Of each class; the first one's is 0."""
    slope: float

    def __call__(self, p: np.ndarray) -> np.ndarray:
        """(n, K) → (n, K)"""
        scores = np.array(self.shift) + self.slope * np.log(np.maximum(p, SMALLEST))
        scores = np.exp(scores - scores.max(1, keepdims=True))
        return scores / scores.sum(1, keepdims=True)


def recalibration(p: np.ndarray, y: np.ndarray) -> Recalibration:
    """The one that makes these outcomes likeliest."""
    scores = torch.from_numpy(np.log(np.maximum(p, SMALLEST))).double()
    happened = torch.from_numpy(np.asarray(y, dtype=np.int64))
    found = torch.zeros(p.shape[1], dtype=torch.float64, requires_grad=True)  # slope − 1, then all shifts but the first
    optimiser = torch.optim.LBFGS([found], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        shift = torch.cat([found.new_zeros(1), found[1:]])
        value = torch.nn.functional.cross_entropy(shift + (1 + found[0]) * scores, happened)
        value = value + PENALTY * (found**2).sum()
        value.backward()
        return value

    optimiser.step(loss)
    numbers = found.detach().tolist()
    return Recalibration((0.0, *numbers[1:]), 1 + numbers[0])


def cross_fitted(p: np.ndarray, y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """(n, K): each fold recalibrated by what happened in the others."""
    after = np.array(p, dtype=np.float64)
    for number in np.unique(fold):
        rest = fold != number
        if rest.any():
            after[~rest] = recalibration(p[rest], y[rest])(p[~rest])
    return after

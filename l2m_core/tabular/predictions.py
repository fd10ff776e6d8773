"""What a method predicts for rows of a cohort, and what it reads of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

LOG_TWO_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Gaussian:
    """A normal predictive distribution for each of n rows, in the unit of the outcome."""

    mean: np.ndarray
    """(n,)"""
    std: np.ndarray
    """(n,), above zero"""

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Log density at y: (n,)."""
        standardised = (np.asarray(y, dtype=np.float64) - self.mean) / self.std
        return -0.5 * (standardised**2 + LOG_TWO_PI) - np.log(self.std)

    def quantile(self, p: float) -> np.ndarray:
        """The value below which a share p of the distribution lies: (n,)."""
        return self.mean + self.std * float(torch.special.ndtri(torch.tensor(p, dtype=torch.float64)))

    def entropy(self) -> np.ndarray:
        """Differential entropy in nats: (n,)."""
        return 0.5 * (1 + LOG_TWO_PI) + np.log(self.std)


Prediction = np.ndarray | Gaussian
"""(n, K) class probabilities, or a Gaussian for a continuous outcome."""


class CohortLike(Protocol):
    """What a method reads of a cohort."""

    @property
    def x(self) -> np.ndarray:
        """(N, d) float32, NaN where not recorded; a category is its code."""

    @property
    def y(self) -> np.ndarray:
        """(N,) class codes, or values."""

    @property
    def kind(self) -> str:
        """binary, multiclass or continuous"""

    @property
    def n_classes(self) -> int:
        """K, or 0 for a continuous outcome."""

    @property
    def acquirable(self) -> np.ndarray:
        """(d,) bool: may be measured; the others are baseline."""

    @property
    def categorical(self) -> np.ndarray:
        """(d,) bool"""

    @property
    def costs(self) -> np.ndarray:
        """(d,) price of the action that measures each feature"""

    @property
    def groups(self) -> np.ndarray:
        """(d,) int64, 0, 1, …: the action that measures each feature; features of one panel share a number."""


def known_cells(x: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(n, d) bool: asked for, and with an answer."""
    return np.asarray(a, dtype=bool) & ~np.isnan(x)

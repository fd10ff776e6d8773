"""What every method of feature acquisition offers: ``fit(cohort)``, ``predict(x, a)``, ``rank(x, a)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from l2m_core.errors import ConfigError

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


@runtime_checkable
class Method(Protocol):
    """Learns from a cohort to predict from partly known rows, and to say what to measure next.

    x: (n, d) float32, NaN allowed; a: (n, d) bool, what has been measured. A value where a = 0 never matters.
    A cell with a = 1 and NaN was asked for and could not be had: it tells nothing and is not asked for again.
    """

    def fit(self, cohort: CohortLike) -> Method:
        """Learn from the cohort; fitting again forgets the earlier cohort."""

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        """(n, K) probabilities, or a Gaussian over n rows."""

    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(n, d) scores, higher first; -inf where blocked: measured, asked for in vain, or not acquirable."""


METHODS: dict[str, Callable[..., Method]] = {}
"""Name → factory. Every factory takes ``seed`` and the settings of its method, by keyword."""


Factory = TypeVar("Factory", bound=Callable[..., Any])


def register(name: str) -> Callable[[Factory], Factory]:
    """Make a class, or a function that gives a method, known in METHODS under this name."""

    def enter(factory: Factory) -> Factory:
        METHODS[name] = factory
        return factory

    return enter


def make_method(name: str, *, seed: int = 0, **settings: object) -> Method:
    """The method of this name, not yet fitted."""
    if name not in METHODS:
        raise ConfigError(f"There is no method '{name}'. Choose one of: {', '.join(sorted(METHODS))}.")
    try:
        return METHODS[name](seed=seed, **settings)
    except TypeError as error:
        raise ConfigError(f"Method '{name}' cannot be made with the settings {sorted(settings)}: {error}.") from error


def known_cells(x: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(n, d) bool: asked for, and with an answer."""
    return np.asarray(a, dtype=bool) & ~np.isnan(x)


def block(scores: np.ndarray, a: np.ndarray, acquirable: np.ndarray) -> np.ndarray:
    """The scores with -inf where a feature may not be picked."""
    return np.where(np.asarray(a, dtype=bool) | ~acquirable, -np.inf, scores).astype(np.float32)

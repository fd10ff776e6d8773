"""What every method of feature acquisition offers: ``fit(cohort)``, ``predict(x, a)``, ``rank(x, a)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from l2m_core import plugins
from l2m_core.errors import ConfigError, type_of
from l2m_core.tabular.predictions import CohortLike, Prediction


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


def find_method(name: str) -> Callable[..., Method]:
    """The factory of this name: one of METHODS, one that an installed package offers, or `module:object`."""
    found = METHODS.get(name) or plugins.find_plugin(
        plugins.METHODS, name, callable, "a class or function that takes `seed` and gives a method"
    )
    if found is None:
        known = sorted({*METHODS, *plugins.offered(plugins.METHODS)})
        raise ConfigError(f"There is no method '{name}'. Choose one of: {', '.join(known)}; or module:object.")
    return found


def make_method(name: str, *, seed: int = 0, **settings: object) -> Method:
    """The method of this name, not yet fitted."""
    factory = find_method(name)
    try:
        method = factory(seed=seed, **settings)
    except TypeError as error:
        raise ConfigError(f"Method '{name}' cannot be made with the settings {sorted(settings)}: {error}.") from error
    if not isinstance(method, Method):
        lacking = [verb for verb in ("fit", "predict", "rank") if not hasattr(method, verb)]
        raise ConfigError(f"'{name}' gives {type_of(method)}, which is no method: it has no {', '.join(lacking)}.")
    return method


def block(scores: np.ndarray, a: np.ndarray, acquirable: np.ndarray) -> np.ndarray:
    """The scores with -inf where a feature may not be picked."""
    return np.where(np.asarray(a, dtype=bool) | ~acquirable, -np.inf, scores).astype(np.float32)

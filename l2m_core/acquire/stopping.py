"""When to stop asking: budgets in count and cost, too little to gain, or sure enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from l2m_core.errors import ConfigError
from l2m_core.metrics import entropies


@dataclass(frozen=True)
class Stopping:
    """Rules that are None do not apply. The first that holds, in this order, gives the reason."""

    budget: int | None = None
    """Most actions."""
    cost_budget: float | None = None
    """Most cost in all."""
    least_gain: float | None = None
    """Nats; stop when the best test promises less."""
    confidence: float | None = None
    """Stop when the likeliest class is at least this likely; a continuous outcome has none."""
    most_entropy: float | None = None
    """Nats; stop when what is left to know falls below this."""

    def __post_init__(self) -> None:
        for name in ("budget", "cost_budget", "least_gain", "most_entropy"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ConfigError(f"stopping.{name} is {value}; it must be zero or more.")
        if self.confidence is not None and not 0 < self.confidence <= 1:
            raise ConfigError(f"stopping.confidence is {self.confidence}; it must lie between 0 and 1.")

    def reached(self, prediction, best_gain: np.ndarray, taken: np.ndarray, spent: np.ndarray) -> np.ndarray:
        """(n,) bool. best_gain: nats of the best test left; taken: actions so far; spent: cost so far."""
        stop = np.zeros(len(taken), dtype=bool)
        if self.budget is not None:
            stop |= taken >= self.budget
        if self.cost_budget is not None:
            stop |= spent >= self.cost_budget
        if self.least_gain is not None:
            stop |= best_gain < self.least_gain
        if self.confidence is not None and isinstance(prediction, np.ndarray):
            stop |= prediction.max(-1) >= self.confidence
        if self.most_entropy is not None:
            stop |= entropies(prediction) <= self.most_entropy
        return stop

    def reason(self, prediction, best_gain: float, taken: int, spent: float) -> str | None:
        """Why to stop now, in words; None to go on. For one patient."""
        if self.budget is not None and taken >= self.budget:
            return f"The budget of {self.budget} tests is used."
        if self.cost_budget is not None and spent >= self.cost_budget:
            return f"The cost budget of {self.cost_budget:g} is used ({spent:g} spent)."
        if not np.isfinite(best_gain):
            return "No test is left to ask for."
        if self.least_gain is not None and best_gain < self.least_gain:
            return f"The best test left promises {best_gain:.2g} nats, less than the threshold of {self.least_gain:g}."
        if self.confidence is not None and isinstance(prediction, np.ndarray):
            top = float(prediction.max())
            if top >= self.confidence:
                return f"The likeliest outcome has reached {top:.1%}, at least the {self.confidence:.0%} asked for."
        if self.most_entropy is not None:
            left = float(entropies(prediction)[0])
            if left <= self.most_entropy:
                return f"What is left to know ({left:.3f} nats) is at most the {self.most_entropy:g} asked for."
        return None

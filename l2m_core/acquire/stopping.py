"""When to stop measuring: budgets in count and cost, too little left to gain, or confident enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        """(n,) bool. best_gain: nats of the best test left, -inf where none is; taken: actions so far; spent: cost so far."""
        stop = np.zeros(len(taken), dtype=bool)
        for holds, _ in self._rules(prediction, best_gain, taken, spent):
            stop |= holds
        return stop

    def reason(self, prediction, best_gain: float, taken: int, spent: float) -> str | None:
        """Why to stop now, in words; None to go on. For one patient."""
        one = (np.array([value]) for value in (best_gain, taken, spent))
        return next((words(0) for holds, words in self._rules(prediction, *one) if holds[0]), None)

    def cost_left(self, spent: float) -> float:
        """What may still be spent; infinite without a cost budget."""
        return float("inf") if self.cost_budget is None else max(0.0, self.cost_budget - spent)

    def affordable(self, spent: np.ndarray, costs: np.ndarray) -> np.ndarray:
        """(n, d) bool: tests that cost no more than what is left. spent: (n,); costs: (d,)."""
        budget = float("inf") if self.cost_budget is None else self.cost_budget
        return spent[:, None] + costs <= budget

    def _rules(
        self, prediction, best_gain: np.ndarray, taken: np.ndarray, spent: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Callable[[int], str]]]:
        """The rules that apply, in order: for which of n patients each holds (n,), and the words for one of them."""
        if self.budget is not None:
            yield taken >= self.budget, lambda i: f"The budget of {self.budget} tests is used."
        if self.cost_budget is not None:
            yield (
                spent >= self.cost_budget,
                lambda i: f"The cost budget of {self.cost_budget:g} is used ({spent[i]:g} spent).",
            )
        yield ~np.isfinite(best_gain), lambda i: "No test is left to ask for."
        if self.least_gain is not None:
            yield (
                best_gain < self.least_gain,
                lambda i: (
                    f"The best test left promises {best_gain[i]:.2g} nats, less than the threshold of {self.least_gain:g}."
                ),
            )
        if self.confidence is not None and isinstance(prediction, np.ndarray):
            top = prediction.max(-1)
            yield (
                top >= self.confidence,
                lambda i: (
                    f"The likeliest outcome has reached {top[i]:.1%}, at least the {self.confidence:.0%} asked for."
                ),
            )
        if self.most_entropy is not None:
            left = entropies(prediction)
            yield (
                left <= self.most_entropy,
                lambda i: f"What is left to know ({left[i]:.3f} nats) is at most the {self.most_entropy:g} asked for.",
            )

"""Policies: what to measure next. Each scores features for n patients, higher first; blocking is common to all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from l2m_core.answering.predictive import Predictive
from l2m_core.errors import ConfigError, FeatureError
from l2m_core.memory import Answer, CohortMemory
from l2m_core.metrics import entropies


class Policy(Protocol):
    """`scores(memory, x, answer)`: (n, d), x with NaN where unknown; `answer` is what the model said of x."""

    def scores(self, memory: CohortMemory, x: np.ndarray, answer: Answer) -> np.ndarray: ...


@dataclass(frozen=True)
class Gain:
    """Expected drop in log loss, in nats."""

    def scores(self, memory, x, answer):
        return answer.gain


@dataclass(frozen=True)
class GainPerCost:
    """Nats per unit of cost; a free test costs a hundredth of the cheapest paid one."""

    def scores(self, memory, x, answer):
        costs = memory.cohort.costs
        paid = costs[costs > 0]
        floor = paid.min() / 100 if len(paid) else 1.0
        return answer.gain / np.maximum(costs, floor)


@dataclass(frozen=True)
class Learned:
    """The policy head's logits: arg-max of what was trained for acquisition."""

    def scores(self, memory, x, answer):
        return answer.policy


@dataclass(frozen=True)
class RandomOrder:
    """Each patient's own random order, the same at every step."""

    seed: int = 0

    def scores(self, memory, x, answer):
        return np.random.default_rng(self.seed).random(x.shape)


@dataclass(frozen=True)
class FixedOrder:
    """One order for everybody."""

    order: tuple[str, ...]

    def scores(self, memory, x, answer):
        names = memory.cohort.names
        unknown = [name for name in self.order if name not in names]
        if unknown:
            raise FeatureError(f"The fixed order names '{unknown[0]}', which the cohort does not have.")
        place = {name: -float(i) for i, name in enumerate(self.order)}
        return np.tile([place.get(name, -float(len(names))) for name in names], (len(x), 1))


@dataclass(frozen=True)
class MonteCarlo:
    """Fills each candidate with values of similar context rows, asks again, and averages the drop in entropy.

    Needs no trained head, and scores whole panels jointly.
    """

    draws: int = 8
    neighbours: int = 64
    seed: int = 0

    def scores(self, memory, x, answer):
        scores = np.full(x.shape, -np.inf)
        now = entropies(answer.prediction)
        near = nearest_rows(memory, x, self.neighbours)  # (n, m) context rows, nearest first
        generator = np.random.default_rng(self.seed)
        for action in np.unique(memory.cohort.groups):
            members = np.flatnonzero((memory.cohort.groups == action) & memory.cohort.acquirable)
            asked = np.isnan(x[:, members]).any(1) if len(members) else np.zeros(len(x), bool)
            rows = np.flatnonzero(asked)
            if len(rows) == 0:
                continue
            drop = self._drop(memory, x[rows], now[rows], near[rows], members, generator)
            scores[np.ix_(rows, members)] = drop[:, None]
        return scores

    def _drop(self, memory, x, now, near, members, generator):
        """(n,) expected drop in entropy by measuring `members` together."""
        context = memory.cohort.x
        total, used = np.zeros(len(x)), np.zeros(len(x))
        for _ in range(self.draws):
            donor = near[np.arange(len(x)), generator.integers(0, near.shape[1], len(x))]
            filled = x.copy()
            hole = np.isnan(x[:, members])
            filled[:, members] = np.where(hole, context[donor][:, members], x[:, members])
            told = (hole & ~np.isnan(filled[:, members])).any(1)  # a donor without the value tells nothing
            total += np.where(told, now - entropies(memory.answer(filled).prediction), 0.0)
            used += told
        return total / np.maximum(used, 1)


def nearest_rows(memory: CohortMemory, x: np.ndarray, count: int) -> np.ndarray:
    """(n, count) context rows that are most like each patient on what is known of both."""
    middle, scale = memory.spread
    context = (memory.cohort.x - middle) / scale
    recorded = ~np.isnan(context)
    values = np.nan_to_num(context)
    count = min(count, len(context))
    nearest = np.empty((len(x), count), dtype=np.int64)
    for start in range(0, len(x), 256):
        part = (x[start : start + 256] - middle) / scale
        known = ~np.isnan(part)
        shown = np.clip(np.nan_to_num(part), -5, 5)
        clipped = np.clip(values, -5, 5)
        # Σ over shared features of (u - v)², by products instead of an (n, N, d) array
        shared = known.astype(np.float32) @ recorded.T.astype(np.float32)
        distance = (
            (shown**2 * known) @ recorded.T
            + known @ (clipped**2 * recorded).T
            - 2 * (shown * known) @ (clipped * recorded).T
        )
        # A feature that a row lacks counts as an average disagreement (2 for standardised values).
        distance = distance + 2.0 * (known.sum(1, keepdims=True) - shared)
        nearest[start : start + 256] = np.argsort(distance, axis=1, kind="stable")[:, :count]
    return nearest


POLICIES = {
    "gain": Gain,
    "gain per cost": GainPerCost,
    "learned": Learned,
    "random": RandomOrder,
    "fixed": FixedOrder,
    "monte carlo": MonteCarlo,
}
READY = tuple(name for name in POLICIES if name != "fixed")
"""Those that a name is enough for; a fixed order has to be given."""
GUIDED = tuple(name for name in READY if name != "random")
"""Those that go by what the model says of the patient."""


def make_policy(policy: str | Policy | None, default: str = "gain", **settings) -> Policy:
    """A policy by name, or the one given, or the model's default."""
    if policy is not None and not isinstance(policy, str):
        return policy
    name = (policy or default).replace("_", " ")
    if name not in POLICIES:
        raise ConfigError(f"There is no policy '{policy}'. Choose one of: {', '.join(POLICIES)}.")
    try:
        return POLICIES[name](**settings)
    except TypeError as error:
        raise ConfigError(f"Policy '{name}' cannot be made with the settings {sorted(settings)}: {error}.") from error


def block(scores: np.ndarray, x: np.ndarray, acquirable: np.ndarray, possible: np.ndarray | None = None) -> np.ndarray:
    """-inf where a feature is known, cannot be acquired, or is not `possible` ((n, d) bool)."""
    allowed = np.isnan(x) & acquirable
    if possible is not None:
        allowed = allowed & possible
    return np.where(allowed, scores, -np.inf)


def gains_of(policy: Policy, scores: np.ndarray, answer: Answer) -> np.ndarray:
    """(n, d) nats by which rules stop, whatever the scores are: what the policy itself expects, if that is in nats."""
    return scores if isinstance(policy, MonteCarlo) else answer.gain


@dataclass(frozen=True)
class Guided:
    """A memory and a policy as one method: `predict(x, a)` and `rank(x, a)`, like every other method."""

    memory: CohortMemory
    policy: Policy = field(default_factory=Gain)

    def step(self, x: np.ndarray, a: np.ndarray) -> tuple[np.ndarray | Predictive, np.ndarray, np.ndarray]:
        """Prediction, and blocked scores and gains (n, d), in one pass. a: (n, d) bool, what has been asked for.

        Gains are nats whatever the scores are: a rule for stopping compares nothing else.
        """
        shown = np.where(a, x, np.nan).astype(np.float32)
        answer = self.memory.answer(shown)
        scores = self.policy.scores(self.memory, shown, answer)
        gain = gains_of(self.policy, scores, answer)
        acquirable = self.memory.cohort.acquirable
        return answer.prediction, block(scores, shown, acquirable, ~a), block(gain, shown, acquirable, ~a)

    def predict(self, x: np.ndarray, a: np.ndarray) -> np.ndarray | Predictive:
        return self.memory.answer(np.where(a, x, np.nan).astype(np.float32)).prediction

    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.step(x, a)[1]

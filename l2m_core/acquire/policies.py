"""Policies: what to measure next. Each scores the features of n patients, higher first; what cannot be had is blocked
afterwards, in the same way for all (`block`)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar, Protocol

import numpy as np

from l2m_core.acquire.random_order import random_scores
from l2m_core.acquire.support import nearest_rows
from l2m_core.answering.engine import Answer, ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.errors import ConfigError, FeatureError
from l2m_core.metrics import entropies


class Policy(Protocol):
    """Ranks features for partly known patients."""

    @property
    def in_nats(self) -> bool:
        """Whether the scores are expected gains in nats, by which rules may stop."""

    def scores(self, memory: ConditionedModel, x: np.ndarray, answer: Answer) -> np.ndarray:
        """(n, d) scores. x: (n, d) with NaN where unknown; answer: the model's answer for x."""


@dataclass(frozen=True)
class Gain:
    """Expected drop in log loss, in nats."""

    in_nats: ClassVar[bool] = True

    def scores(self, memory, x, answer):
        return answer.gain


@dataclass(frozen=True)
class GainPerCost:
    """Nats per unit of cost; a free test costs a hundredth of the cheapest paid one."""

    in_nats: ClassVar[bool] = False

    def scores(self, memory, x, answer):
        costs = memory.cohort.costs
        paid = costs[costs > 0]
        floor = paid.min() / 100 if len(paid) else 1.0
        return answer.gain / np.maximum(costs, floor)


@dataclass(frozen=True)
class Learned:
    """The policy head's logits: arg-max of what was trained for acquisition."""

    in_nats: ClassVar[bool] = False

    def scores(self, memory, x, answer):
        return answer.policy


@dataclass(frozen=True)
class RandomOrder:
    """Each patient's own random order, the same at every step."""

    seed: int = 0
    in_nats: ClassVar[bool] = False

    def scores(self, memory, x, answer):
        return random_scores(x.shape, self.seed)


@dataclass(frozen=True)
class FixedOrder:
    """One order for everybody."""

    order: tuple[str, ...]
    in_nats: ClassVar[bool] = False

    def scores(self, memory, x, answer):
        names = memory.cohort.names
        unknown = [name for name in self.order if name not in names]
        if unknown:
            raise FeatureError(f"The fixed order names '{unknown[0]}', which the cohort does not have.")
        score = {name: -float(position) for position, name in enumerate(self.order)}
        return np.tile([score.get(name, -float(len(names))) for name in names], (len(x), 1))


@dataclass(frozen=True)
class MonteCarlo:
    """Fills each candidate with values of similar context rows, predicts again, and averages the drop in entropy:

        score_j = mean over m of  H(y | x⊙a) − H(y | x⊙a, x_j = v_m),      v_m the value of a context row near the patient.

    Needs no trained head, and scores whole panels jointly.
    """

    draws: int = 8
    neighbours: int = 64
    seed: int = 0
    in_nats: ClassVar[bool] = True

    def scores(self, memory, x, answer):
        scores = np.full(x.shape, -np.inf)
        now = entropies(answer.prediction)
        near = nearest_rows(memory, x, self.neighbours)  # (n, m) context rows, nearest first
        generator = np.random.default_rng(self.seed)
        for action in np.unique(memory.cohort.groups):
            members = np.flatnonzero((memory.cohort.groups == action) & memory.cohort.acquirable)
            unknown = np.isnan(x[:, members]).any(1) if len(members) else np.zeros(len(x), bool)
            rows = np.flatnonzero(unknown)
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
            missing = np.isnan(x[:, members])
            filled[:, members] = np.where(missing, context[donor][:, members], x[:, members])
            is_filled = (missing & ~np.isnan(filled[:, members])).any(1)  # a donor may lack the value as well
            total += np.where(is_filled, now - entropies(memory.answer(filled).prediction), 0.0)
            used += is_filled
        return total / np.maximum(used, 1)


POLICIES = {
    "gain": Gain,
    "gain per cost": GainPerCost,
    "learned": Learned,
    "random": RandomOrder,
    "fixed": FixedOrder,
    "monte carlo": MonteCarlo,
}
NAMED_POLICIES = tuple(name for name in POLICIES if name != "fixed")
"""Policies that a name is enough for; a fixed order has to be given."""


def make_policy(policy: str | Policy | None, default: str = "gain", **settings) -> Policy:
    """A policy by name, or the one given, or the model's default."""
    if policy is not None and not isinstance(policy, str):
        return policy
    name = _written_with_spaces(policy or default)
    if name not in POLICIES:
        raise ConfigError(f"There is no policy '{policy}'. Choose one of: {', '.join(POLICIES)}.")
    try:
        return POLICIES[name](**settings)
    except TypeError as error:
        raise ConfigError(f"Policy '{name}' cannot be made with the settings {sorted(settings)}: {error}.") from error


def is_seeded(policy: str) -> bool:
    """Whether the policy of this name draws at random, and so takes a seed."""
    kind = POLICIES.get(_written_with_spaces(policy))
    return kind is not None and "seed" in {setting.name for setting in fields(kind)}


def _written_with_spaces(policy: str) -> str:
    return policy.replace("_", " ")


def block(scores: np.ndarray, x: np.ndarray, acquirable: np.ndarray, possible: np.ndarray | None = None) -> np.ndarray:
    """-inf where a feature is known, cannot be acquired, or is not `possible` ((n, d) bool)."""
    allowed = np.isnan(x) & acquirable
    if possible is not None:
        allowed = allowed & possible
    return np.where(allowed, scores, -np.inf)


def gains_of(policy: Policy, scores: np.ndarray, answer: Answer) -> np.ndarray:
    """(n, d) nats by which rules stop: the policy's own scores where they are in nats, else the model's gains."""
    return scores if getattr(policy, "in_nats", False) else answer.gain  # a policy of one's own may not say


@dataclass(frozen=True)
class PolicyMethod:
    """A memory and a policy as one method: `predict(x, a)` and `rank(x, a)`, like every other method."""

    memory: ConditionedModel
    policy: Policy = field(default_factory=Gain)

    def step(self, x: np.ndarray, a: np.ndarray) -> tuple[np.ndarray | Predictive, np.ndarray, np.ndarray]:
        """Prediction, and blocked scores and gains (n, d), in one pass. a: (n, d) bool, what has been asked for.

        Gains are in nats whatever the scores are: rules for stopping compare nats.
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

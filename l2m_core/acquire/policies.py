"""Policies: what to measure next. Each scores the features of n patients, higher first; what cannot be had is blocked
afterwards, in the same way for all (`block`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Protocol

import numpy as np

from l2m_core.acquire.head_alignment import between, log_gain
from l2m_core.acquire.information import outlooks
from l2m_core.acquire.support import nearest_rows
from l2m_core.answering.engine import Answer, ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.errors import ConfigError, FeatureError
from l2m_core.metrics import entropies
from l2m_core.model.results import MOST_LEVELS


class Policy(Protocol):
    """Ranks features for partly known patients."""

    @property
    def in_nats(self) -> bool:
        """Whether the scores are expected gains in nats, by which rules may stop."""

    def scores(self, memory: ConditionedModel, x: np.ndarray, answer: Answer) -> np.ndarray:
        """(n, d) scores. x: (n, d) with NaN where unknown; answer: the model's answer for x."""


ESTIMATED_CELLS = 1_500_000  # cells that estimates of one patient read, at most: bounds a step on long and wide cohorts
# Of a query row on 1,000 rows of 20 features. A first query takes no longer than the least that is computed and estimated takes
# there; of a cohort that is answered faster, more is.
ROW_WORK = 65_625
LEAST_ESTIMATED = 4  # tests, where as many follow those computed first
# Nats. A test that tells no more moves no belief by a point, as √(2 · 0.0001 · ¼) is 0.007: which of such tests tells most is not
# worth a second query.
LEAST_TOLD = 0.0001
HELD = 3.0  # so many computed tests' worth of believing the head as it is


@dataclass(frozen=True)
class GainHead:
    """The gain head's expected drop in log loss, in nats: one query for all tests, for bulk work."""

    in_nats: ClassVar[bool] = True

    def scores(self, memory, x, answer):
        return answer.gain


@dataclass(frozen=True)
class Looked:
    """What a look at the results of tests gives. gains: (n, d) nats; moves: (n, d, D) how far the belief typically moves, as
    `Outlook.typical`; NaN where a test's results were not looked at."""

    gains: np.ndarray
    moves: np.ndarray


@dataclass(frozen=True)
class Gain:
    """What a test would tell, in nats, as the release computes it (AnswerSettings.gains).

    "answers": mutual information of the model's own answers (information.py) for the tests that could come first; an
    estimate of it for some that follow (`estimated_gains`); the gain head, which screens all of them, for the rest, in line
    with those computed for this patient. "head": the gain head alone.
    """

    computed: int | None = None
    """How many actions are computed at first, or more where that takes no longer; None: as the release says."""
    again: int = 2
    """How many of those left are computed at once, at most, as long as they could be better than all that are."""
    most: int = 12
    """How many are computed at most."""
    in_nats: ClassVar[bool] = True

    def scores(self, memory, x, answer):
        return self.look(memory, x, answer).gains

    def look(self, memory, x, answer) -> Looked:
        """The scores, and how far each test that was looked at typically moves the belief."""
        if memory.release.inference.gains == "head":
            return Looked(answer.gain, np.full((*x.shape, 1), np.nan))
        found = [self._one(memory, *row) for row in zip(x, answer.gain, answer.values, strict=True)]
        gains, moves = zip(*found, strict=True)
        return Looked(np.stack(gains), np.stack(moves))

    def _one(self, memory, x, screened, values):
        """(d,) of one patient, -inf where a test is too rarely recorded to say; and (d, D) typical moves."""
        actions = _open_actions(memory, x, screened)
        gain, best, done = screened.copy(), LEAST_TOLD, 0
        moves = np.full((len(x), max(1, memory.cohort.n_classes)), np.nan)
        told: dict[int, float] = {}  # column → log of what it tells, over what the head promised
        batch = actions[: self._at_first(memory, len(actions))]
        # Single tests that come after those computed first are estimated, in the same query.
        estimated = [columns for columns in actions[len(batch) :] if len(columns) == 1]
        estimated = estimated[: self._estimated(memory, len(batch))]
        asked = [*batch, *estimated]
        # The head, where it is in line, and an estimate err apart from each other, so that their mean is better than either.
        share = 0.0 if memory.alignment is None else memory.alignment.share_of_estimates
        while batch:
            for position, outlook in enumerate(outlooks(memory, x, values, asked, rough_from=len(batch))):
                columns = asked[position]
                gain[columns] = -np.inf if outlook is None else outlook.gain
                if outlook is not None:
                    moves[columns] = outlook.typical
                    best = max(best, outlook.gain) if position < len(batch) else best
                    told[columns[0]] = log_gain(outlook.gain) - log_gain(screened[columns].max())
            done += len(batch)
            # For this patient the head may promise too much, or too little, of all tests alike.
            promised = screened * math.exp(sum(told.values()) / (len(told) + HELD))
            for columns in actions[done:]:
                if columns not in estimated:
                    gain[columns] = promised[columns]
                elif share and columns in asked and np.isfinite(gain[columns]).all():
                    gain[columns] = between(gain[columns], promised[columns], share)
            actions[done:] = sorted(actions[done:], key=lambda columns: -gain[columns].max())
            # What is promised of an action that is left: computed too if that is more than the best so far.
            batch = actions[done : min(done + self.again, self.most)]
            batch = asked = [columns for columns in batch if gain[columns].max() > best]
        return gain, moves

    def _least(self, memory) -> int:
        return memory.release.inference.computed_gains if self.computed is None else self.computed

    def _rows(self, memory) -> int:
        """Of the first query, at most, unless the least takes more."""
        least = MOST_LEVELS * self._least(memory) + memory.release.inference.estimated_from * LEAST_ESTIMATED
        return ROW_WORK * least // memory.work

    def _at_first(self, memory, actions: int) -> int:
        """How many of so many actions are computed in the first query, beside the estimates of those that follow."""
        settings, rows, least = memory.release.inference, self._rows(memory), min(self.most, self._least(memory))
        for count in range(min(self.most, actions), least, -1):
            follow = min(settings.estimated_gains, actions - count)
            if MOST_LEVELS * count + settings.estimated_from * follow <= rows:
                return count
        return least

    def _estimated(self, memory, first: int) -> int:
        """How many single tests are estimated, at most, beside so many computed at first."""
        settings = memory.release.inference
        left = self._rows(memory) - MOST_LEVELS * first
        affordable = ESTIMATED_CELLS // (settings.estimated_from * memory.cells)
        return min(settings.estimated_gains, affordable, max(LEAST_ESTIMATED, left // settings.estimated_from))


def _open_actions(memory, x, screened) -> list[list[int]]:
    """The columns of each action that is open for a patient, those first of which the head promises most."""
    is_open = np.isnan(x) & memory.cohort.acquirable & np.isfinite(screened)
    groups = memory.cohort.groups
    actions = [np.flatnonzero(is_open & (groups == group)).tolist() for group in np.unique(groups[is_open])]
    return sorted(actions, key=lambda columns: -screened[columns].max())


@dataclass(frozen=True)
class GainPerCost:
    """Nats per unit of cost; a free test costs a hundredth of the cheapest paid one."""

    in_nats: ClassVar[bool] = False

    def scores(self, memory, x, answer):
        costs = memory.cohort.costs
        paid = costs[costs > 0]
        # Dividing by a cost of 0 would put every free test first, whatever it tells.
        floor = paid.min() / 100 if len(paid) else 1.0
        return Gain().scores(memory, x, answer) / np.maximum(costs, floor)


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
    first: int = 0
    """How many patients come before those that are asked about, where these are a part of a larger table."""
    in_nats: ClassVar[bool] = False

    def scores(self, memory, x, answer):
        # As `random_scores` of the whole table, from these rows on.
        return _uniform(self.seed, self.first, x.shape)


def _uniform(seed: int | tuple[int, ...], first: int, shape: tuple[int, int]) -> np.ndarray:
    """(n, k) numbers from 0 to 1: what rows `first`, first + 1 … of a larger table have, wherever it is cut."""
    # Each number takes one draw.
    return np.random.Generator(np.random.PCG64(seed).advance(first * shape[1])).random(shape)


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
        # Earlier in the order is higher; features that it does not name come after all that it does.
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
    first: int = 0
    """As of `RandomOrder`."""
    in_nats: ClassVar[bool] = True

    def scores(self, memory, x, answer):
        scores = np.full(x.shape, -np.inf)
        now = entropies(answer.prediction)
        near = nearest_rows(memory, x, self.neighbours)  # (n, m) context rows, nearest first
        for action in np.unique(memory.cohort.groups):
            members = np.flatnonzero((memory.cohort.groups == action) & memory.cohort.acquirable)
            unknown = np.isnan(x[:, members]).any(1) if len(members) else np.zeros(len(x), bool)
            rows = np.flatnonzero(unknown)
            if len(rows) == 0:
                continue
            chance = _uniform((self.seed, int(action)), self.first, (len(x), self.draws))
            # (n, draws): each patient's own donors, whoever else is asked about.
            donors = np.take_along_axis(near, (chance * near.shape[1]).astype(np.int64), axis=1)
            # All members of a panel get its score: whichever is picked, the whole panel is measured.
            drop = self._drop(memory, x[rows], now[rows], donors[rows], members)
            scores[np.ix_(rows, members)] = drop[:, None]
        return scores

    def _drop(self, memory, x, now, donors, members):
        """(n,) expected drop in entropy by measuring `members` together. donors: (n, draws) context rows."""
        context = memory.cohort.x
        total, used = np.zeros(len(x)), np.zeros(len(x))
        for donor in donors.T:
            # All of a panel's values come from one donor, so that they go together as they did in a patient.
            filled = x.copy()
            missing = np.isnan(x[:, members])
            filled[:, members] = np.where(missing, context[donor][:, members], x[:, members])
            is_filled = (missing & ~np.isnan(filled[:, members])).any(1)  # a donor may lack the value as well
            total += np.where(is_filled, now - entropies(memory.answer(filled).prediction), 0.0)
            used += is_filled
        # A mean over the donors that had a value; 0 where none had.
        return total / np.maximum(used, 1)


POLICIES = {
    "gain": Gain,
    "gain head": GainHead,
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
        if not hasattr(policy, "scores"):
            raise ConfigError(f"policy is {policy!r:.60}; give a policy's name or one that `make_policy` made.")
        return policy
    name = _written_with_spaces(policy or default)
    if name not in POLICIES:
        raise ConfigError(f"There is no policy '{policy}'. Choose one of: {', '.join(POLICIES)}.")
    try:
        return POLICIES[name](**settings)
    except TypeError as error:
        raise ConfigError(f"Policy '{name}' cannot be made with the settings {sorted(settings)}: {error}.") from error


def for_bulk(policy: str | Policy | None, default: str) -> str | Policy:
    """The policy of roll-outs: the gain head stands in for the gains that it screens, unless they are asked for by name.

    Computing them takes a query for each result of each test that could come first.
    """
    return policy or ("gain head" if default == "gain" else default)


def is_seeded(policy: str | Policy) -> bool:
    """Whether the policy of this name draws at random, and so takes a seed; one that is made already has its own."""
    kind = POLICIES.get(_written_with_spaces(policy)) if isinstance(policy, str) else None
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
    """(n, d) nats by which rules stop: the policy's own scores where they are in nats, else the gain head's."""
    return scores if is_in_nats(policy) else answer.gain


def is_in_nats(policy: Policy) -> bool:
    return getattr(policy, "in_nats", False)  # a policy of one's own may not say


@dataclass(frozen=True)
class PolicyMethod:
    """A memory and a policy as one method: `predict(x, a)` and `rank(x, a)`, like every other method."""

    memory: ConditionedModel
    policy: Policy = field(default_factory=Gain)

    def step(
        self, x: np.ndarray, a: np.ndarray, possible: np.ndarray | None = None
    ) -> tuple[np.ndarray | Predictive, np.ndarray, np.ndarray]:
        """Prediction, and blocked scores and gains (n, d), in one pass. a: (n, d) bool, what has been asked for.

        possible: (n, d) bool, what can be had; as in a step-through, no gain is computed for the rest.
        Gains are in nats whatever the scores are: rules for stopping compare nats.
        """
        shown = np.where(a, x, np.nan).astype(np.float32)
        answer = self.memory.answer(shown)
        can_be_had = answer if possible is None else replace(answer, gain=np.where(possible, answer.gain, -np.inf))
        scores = self.policy.scores(self.memory, shown, can_be_had)
        gain = gains_of(self.policy, scores, answer)
        acquirable = self.memory.cohort.acquirable
        return answer.prediction, block(scores, shown, acquirable, ~a), block(gain, shown, acquirable, ~a)

    def predict(self, x: np.ndarray, a: np.ndarray) -> np.ndarray | Predictive:
        return self.memory.answer(np.where(a, x, np.nan).astype(np.float32)).prediction

    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.step(x, a)[1]

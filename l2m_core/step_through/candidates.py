"""The tests that are left for one patient, as a policy ranks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from l2m_core.acquire.policies import Gain, Looked, Policy, block, is_in_nats
from l2m_core.acquire.support import support_of
from l2m_core.answering.engine import Answer, ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.step_through.events import State


@dataclass(frozen=True)
class Candidate:
    """An acquirable feature as it stands for one patient."""

    feature: str
    score: float
    """What the policy ranks by; -inf where the feature is not open."""
    gain: float
    """In nats; NaN where the feature is known, or too rarely recorded to say."""
    move: float
    """How far its result typically moves the number that is followed, up or down: of the results that its preview tries, each as
    often as it is likely. NaN where the ranking took the gain head's word and tried none."""
    policy: float
    """The policy head's probability of the feature among the open ones."""
    cost: float
    gain_per_cost: float
    turnaround: float | None
    group: str | None
    status: str
    """open, known, unavailable, declined or pending."""
    support: int
    """Cohort rows in which it was recorded."""
    support_near: int
    """The same, among the rows near this patient."""


def rank_candidates(
    memory: ConditionedModel, state: State, x: np.ndarray, answer: Answer, policy: Policy
) -> tuple[Candidate, ...]:
    """Every acquirable feature, best first. x: (1, d), what the state knows; answer: the model's for x."""
    cohort, possible = memory.cohort, can_be_had(memory, state)
    # Nothing is computed for a test that cannot be had; it shows the gain head's number.
    screened = replace(answer, gain=np.where(possible, answer.gain, -np.inf))
    raw_scores, looked = _looked_at(memory, x, screened, policy)
    gains = np.where(possible[0], looked.gains[0], answer.gain[0])
    scores = block(raw_scores, x, cohort.acquirable, possible)[0]
    share = _softmax(block(answer.policy, x, cohort.acquirable, possible)[0])
    overall, near = support_of(memory, x)
    prices, found = cohort.schema.prices, []
    for i, feature in enumerate(cohort.features):
        if feature.role != "acquirable":
            continue
        cost = prices[feature.name]
        status = state.statuses.get(feature.name, "known" if feature.name in state.values else "open")
        gain = float(gains[i]) if status != "known" and np.isfinite(gains[i]) else np.nan
        found.append(
            Candidate(
                feature.name,
                float(scores[i]),
                gain,
                followed_move(looked.moves[0, i], answer.prediction) if status == "open" else np.nan,
                float(share[i]),
                cost,
                gain / cost if cost > 0 else float("nan"),
                feature.turnaround,
                feature.group,
                status,
                int(overall[i]),
                int(near[i]),
            )
        )
    return tuple(sorted(found, key=lambda candidate: -candidate.score))


def _looked_at(memory: ConditionedModel, x: np.ndarray, screened: Answer, policy: Policy) -> tuple[np.ndarray, Looked]:
    """A policy's own scores, and gains in nats with what the results that they come from would move."""
    if isinstance(policy, Gain):
        looked = policy.look(memory, x, screened)
        return looked.gains, looked
    scores = policy.scores(memory, x, screened)
    if not is_in_nats(policy):
        return scores, Gain().look(memory, x, screened)
    return scores, Looked(scores, np.full((*x.shape, max(1, memory.cohort.n_classes)), np.nan))


def followed_class(probabilities: np.ndarray) -> int:
    """Of (K,) probabilities the one that is followed: the positive class of two, else the likeliest."""
    return 1 if len(probabilities) == 2 else int(probabilities.argmax())


def followed_move(typical: np.ndarray, prediction: np.ndarray | Predictive) -> float:
    """Of (D,) typical moves (`Outlook.typical`) that of the number which is followed: a probability, or the mean in its unit."""
    if isinstance(prediction, np.ndarray):
        return float(typical[followed_class(prediction[0])]) if len(typical) > 1 else float("nan")
    return float(typical[0] * prediction.distribution.scale.item())


def share_ranked_first(
    resampled: Sequence[ConditionedModel], state: State, x: np.ndarray, policy: Policy
) -> dict[str, float]:
    """Feature → share of the resampled cohorts in which it would come first."""
    firsts: dict[str, int] = {}
    for memory in resampled:
        raw_scores = policy.scores(memory, x, memory.answer(x))
        scores = block(raw_scores, x, memory.cohort.acquirable, can_be_had(memory, state))[0]
        if np.isfinite(scores).any():
            name = memory.cohort.names[int(scores.argmax())]
            firsts[name] = firsts.get(name, 0) + 1
    return {name: count / len(resampled) for name, count in firsts.items()}


def can_be_had(memory: ConditionedModel, state: State) -> np.ndarray:
    """(1, d) bool: features that nobody has declared unavailable, declined or pending."""
    return np.array([[name not in state.statuses for name in memory.cohort.names]])


def _softmax(logits: np.ndarray) -> np.ndarray:
    if not np.isfinite(logits).any():
        return np.zeros_like(logits)
    weight = np.exp(logits - logits.max())
    return weight / weight.sum()

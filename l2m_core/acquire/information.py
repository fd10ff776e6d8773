"""What a test would tell: the mutual information between the outcome and its result, from the model's own answers.

    I(y; x_j | known) = H(Σ_v p(v) · p(y | known, x_j = v)) − Σ_v p(v) · H(p(y | known, x_j = v))

p(v) is what the model foresees, p(y | known, x_j = v) is what it answers once that result is entered: the number that is
shown beforehand is made of the very beliefs that are shown afterwards. It is never negative, and 0 where no result
would change anything. The members of a panel are drawn together, and tell what they tell together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from l2m_core.acquire.foreseen import draw_results, for_estimate, foresee, is_too_rare
from l2m_core.answering.engine import ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.metrics import entropies

PANEL_DRAWS = 12  # joint results of a panel
NEWTON_STEPS, LONGEST_STEP = 30, 20.0
RIDGE = 1e-3
ROUNDING = 1e-12  # nats
MOST_APART = 0.01  # of a probability, or of the spread of a continuous outcome: one point


@dataclass(frozen=True)
class Outlook:
    """What measuring one action's features may lead to."""

    results: np.ndarray
    """(m, features of the action), as the cohort encodes them."""
    chances: np.ndarray
    """(m,), 1 in all."""
    is_balanced: bool
    """Whether the beliefs, weighted by the chances, average to the belief now."""
    beliefs: np.ndarray
    """(m, K) probabilities of the outcome after each: of its classes, or of the bins of a continuous one."""
    apart: np.ndarray
    """(m, D) by how much the belief after each differs from the belief now: class probabilities, or the mean of a continuous
    outcome in units of its spread."""

    @property
    def movement(self) -> float:
        """How far the belief is expected to move, 0 … 1: total variation, or shift of the mean in units of its spread."""
        size = np.abs(self.apart).sum(1)
        return float(self.chances @ size) / (2 if self.apart.shape[1] > 1 else 1)

    @property
    def typical(self) -> np.ndarray:
        """(D,) how far each number of `apart` typically moves, up or down: the root mean square over the results."""
        return np.sqrt(self.chances @ self.apart**2)

    def crossing(self, threshold: float) -> float:
        """The chance that the probability of a binary outcome's positive class ends on the other side of the threshold."""
        after = self.beliefs[:, 1]
        # `apart` is the belief after a result less the belief now, so any result gives the belief now.
        now = after[0] - self.apart[0, 1]
        return float(self.chances @ ((after >= threshold) != (now >= threshold)))

    @property
    def gain(self) -> float:
        """In nats."""
        return mutual_information(self.chances, self.beliefs)

    def __repr__(self) -> str:
        return f"Outlook({len(self.chances)} results, gain {self.gain:.3g} nats)"


def outlooks(
    memory: ConditionedModel,
    x: np.ndarray,
    values: np.ndarray,
    actions: Sequence[Sequence[int]],
    rough_from: int | None = None,
) -> list[Outlook | None]:
    """One for each action, a list of open columns, of one patient; None where one is too rarely recorded to say.

    x: (d,) with NaN where unknown; values: (d, V) of the model's answer for x; rough_from: the position from which on
    single tests are tried with a few results each, for an estimate.
    """
    # The results of one feature can be listed with their chances; those of a panel are too many, so they are drawn.
    alone = [columns[0] for columns in actions if len(columns) == 1]
    single = dict(zip(alone, foresee(memory, values, alone), strict=True)) if alone else {}
    draws: list[tuple[np.ndarray, np.ndarray] | None] = []
    for position, columns in enumerate(actions):
        if len(columns) > 1:
            draws.append(_drawn_together(memory, x, values, columns))
        elif (found := single[columns[0]]) is not None:
            if rough_from is not None and position >= rough_from:
                found = for_estimate(memory, found)
            draws.append((found.values[:, None], found.chances))
        else:
            draws.append(None)
    asked = [filled(x, columns, draw[0]) for columns, draw in zip(actions, draws, strict=True) if draw is not None]
    if not asked:
        return [None] * len(actions)
    # The belief now, and every result of every action, in one query.
    prediction = memory.predictions(np.concatenate([x[None], *asked]))
    beliefs, middle = as_probabilities(prediction), _middle(prediction)
    looked: list[Outlook | None] = []
    start = 1
    for draw in draws:
        if draw is None:
            looked.append(None)
            continue
        results, chances = draw
        # Row 0 of the query is the patient as known now; the results of the actions follow in order.
        rows = slice(start, start + len(results))
        apart = middle[rows] - middle[0]
        looked.append(Outlook(results, *balance(chances, apart), beliefs[rows], apart))
        start += len(results)
    return looked


def filled(x: np.ndarray, columns: Sequence[int], results: np.ndarray) -> np.ndarray:
    """(m, d): the patient with each of (m, columns) results entered."""
    rows = np.repeat(x[None], len(results), axis=0)
    rows[:, list(columns)] = results
    return rows


def as_probabilities(prediction: np.ndarray | Predictive) -> np.ndarray:
    """(n, K) probabilities whose mutual information is that of the outcome."""
    return prediction if isinstance(prediction, np.ndarray) else prediction.bin_probabilities


def _middle(prediction: np.ndarray | Predictive) -> np.ndarray:
    """(n, D) what has to average to the belief now: class probabilities, or the mean in units of the outcome's spread."""
    if isinstance(prediction, np.ndarray):
        return prediction
    return (prediction.mean / prediction.distribution.scale.item())[:, None]


def balance(chances: np.ndarray, apart: np.ndarray) -> tuple[np.ndarray, bool]:
    """The chances nearest to those given under which the beliefs average to the belief now, and whether they do.

    A belief is the mean of what may come. The model answers before and after a result in separate queries, which agree
    only about. chances: (m,); apart: (m, D) beliefs after each result less the belief now. Where no result lies on one
    side of the belief now, the chances stay as they are.
    """
    # The nearest chances (by Kullback-Leibler) are proportional to  chance · exp(λ · apart).  Newton's method minimises
    # log Σ chance · exp(λ · apart) + ρ/2 · |λ|², which is convex; the small ρ keeps λ finite where nothing can balance.
    tilt = np.zeros(apart.shape[1])
    for _ in range(NEWTON_STEPS):
        weight = _tilted(chances, apart @ tilt)
        miss = weight @ apart
        slope = miss + RIDGE * tilt
        if np.abs(slope).max() < 1e-9:
            break
        curvature = (weight[:, None] * apart).T @ apart - np.outer(miss, miss) + RIDGE * np.eye(len(miss))
        step = np.linalg.solve(curvature, slope)
        # Where the curvature is nearly 0 a whole Newton step would overshoot, so its length is bounded.
        tilt = tilt - step * min(1.0, LONGEST_STEP / np.abs(step).max())
    balanced = _tilted(chances, apart @ tilt)
    is_balanced = bool(np.abs(balanced @ apart).max() <= MOST_APART)
    return (balanced if is_balanced else chances), is_balanced


def _tilted(chances: np.ndarray, power: np.ndarray) -> np.ndarray:
    # The largest power is taken off, so that exp does not overflow; the division cancels it.
    weight = chances * np.exp(power - power.max())
    return weight / weight.sum()


def _drawn_together(
    memory: ConditionedModel, x: np.ndarray, values: np.ndarray, columns: Sequence[int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Joint results (m, columns) of a panel, each as likely: one member after the other, given those before it."""
    if any(is_too_rare(memory, column) for column in columns):
        return None
    generator = np.random.default_rng(0)
    rows, density = np.repeat(x[None], PANEL_DRAWS, axis=0), np.repeat(values[None], PANEL_DRAWS, axis=0)
    for position, column in enumerate(columns):
        if position:
            foreseen = memory.answer(rows).values
            assert foreseen is not None
            density = foreseen
        # Stratified: each of the draws falls into a part of its own, in another order for every member.
        level = (generator.permutation(PANEL_DRAWS) + 0.5) / PANEL_DRAWS
        rows[:, column] = draw_results(memory, density[:, column], column, level)
    return rows[:, list(columns)], np.full(PANEL_DRAWS, 1 / PANEL_DRAWS)


def mutual_information(chances: np.ndarray, beliefs: np.ndarray) -> float:
    """In nats, between a result of (m,) chances and an outcome of (m, K) probabilities after each."""
    # I = H(Σ_v p(v) p(y | v)) − Σ_v p(v) H(p(y | v)): the entropy of the mean belief less the mean entropy.
    gain = float(entropies(chances @ beliefs[None])[0] - chances @ entropies(beliefs))
    return gain if gain > ROUNDING else 0.0  # beliefs that are all alike tell exactly nothing

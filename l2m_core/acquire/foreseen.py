"""What a test may show one patient: the results that the model foresees, and how likely each is.

The model gives probabilities over the ranks of a column (model/results.py). Here they become a few results on the
cohort's own scale, values that somebody in the cohort has: nobody has 2.4 children.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
import torch

from l2m_core.answering.engine import ConditionedModel
from l2m_core.answering.settings import SHARED_VALUES
from l2m_core.model.results import (
    LEAST_CHANCE,
    MOST_LEVELS,
    POINTS,
    cumulative,
    position_at,
    probability_up_to,
    rank_at,
    results_to_try,
)

KEPT = 64  # patients' states, at most, whose foreseen results are kept
FEWEST_RECORDED = 10  # rows that have a test; of a rarer one nothing is foreseen
FEW = 3  # results, of which none is left out
NORMAL = NormalDist()
LOW_AND_HIGH = (0.125, 0.875)  # of POINTS; about a standard deviation from the middle of a normal distribution
WORDS = ("very low", "low", "rather low", "typical", "rather high", "high", "very high")  # of the results at POINTS


@dataclass(frozen=True)
class Foreseen:
    """values: (m,) results as the cohort encodes them, ascending; chances: (m,) how likely each is, 1 in all."""

    values: np.ndarray
    chances: np.ndarray


def foresee(memory: ConditionedModel, density: np.ndarray, columns: Sequence[int]) -> list[Foreseen | None]:
    """density: (d, V) probabilities over each column's ranks; one for each of `columns`, None: too rarely recorded.

    The latest are kept: ranking, previews and reasons ask for one patient's several times.
    """
    key = density.tobytes()
    found = memory.foreseen.get(key)
    if found is None:
        if len(memory.foreseen) >= KEPT:
            memory.foreseen.clear()
        found = memory.foreseen[key] = _foresee_all(memory, density)
    return [found[column] for column in columns]


def tries_shared_values(memory: ConditionedModel) -> bool:
    """Whether values that many rows share are tried with their own chances; earlier releases did not know how."""
    return memory.release.inference.results == SHARED_VALUES


def _tried(memory: ConditionedModel, density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(d, MOST_LEVELS) results and their chances, of each column."""
    logits, features = _logits(density), torch.arange(len(density)).view(1, 1, -1)
    values, chances = (t[0, 0] for t in results_to_try(logits[None, None], memory.scale, features, memory.levels))
    if tries_shared_values(memory):
        *shared, applies = memory.shared_values.results(logits, memory.scale)
        # Where there are few different values, each is tried already.
        applies = (applies & (memory.levels[2][0] > MOST_LEVELS))[:, None]
        values, chances = (torch.where(applies, t, u) for t, u in zip(shared, (values, chances), strict=True))
    return values.double().numpy(), chances.double().numpy()


def _foresee_all(memory: ConditionedModel, density: np.ndarray) -> list[Foreseen | None]:
    found: list[Foreseen | None] = []
    for value, chance, recorded in zip(*_tried(memory, density), memory.scale.count[0].tolist(), strict=True):
        if recorded < FEWEST_RECORDED:
            found.append(None)
            continue
        # Two points may fall on one value, which then has the chance of both.
        different, which = np.unique(value[chance > 0], return_inverse=True)
        merged = np.bincount(which, chance[chance > 0])
        found.append(Foreseen(different.astype(np.float32), merged / merged.sum()))
    return found


def low_and_high(found: Foreseen, shared_apart: bool = False) -> Foreseen:
    """A low and a high result, in place of many: about a standard deviation to each side, as likely one as the other.

    shared_apart: where one result is likelier than all others together, it and the middle one of those, with their chances.
    """
    if len(found.values) <= FEW:
        return found
    likeliest = int(found.chances.argmax())
    if shared_apart and found.chances[likeliest] > 0.5:
        others = np.delete(found.chances, likeliest).cumsum()
        middle = np.delete(found.values, likeliest)[np.searchsorted(others, others[-1] / 2)]
        pair = np.array([found.values[likeliest], middle]), np.array([1 - others[-1], others[-1]])
        order = pair[0].argsort()
        return Foreseen(pair[0][order], pair[1][order])
    low, high = np.searchsorted(np.cumsum(found.chances), LOW_AND_HIGH)
    return found if low == high else Foreseen(found.values[[low, high]], np.array([0.5, 0.5]))


def three_results(found: Foreseen) -> Foreseen:
    """Three in place of many, with chances of their own: a rule of quadrature, in which the mean and the spread of all stay.

    A result is placed where it would lie if results were normal, so that only their order counts. Of the triples that can keep
    mean and spread, that is taken whose third and fourth moments are nearest to those of all.
    """
    if len(found.values) <= FEW:
        return found
    is_likely = found.chances >= LEAST_CHANCE
    values, of_all = found.values[is_likely], found.chances[is_likely] / found.chances[is_likely].sum()
    if len(values) <= FEW:
        return Foreseen(values, of_all)
    z = np.array([NORMAL.inv_cdf(level) for level in np.cumsum(of_all) - of_all / 2])
    z -= of_all @ z
    z /= np.sqrt(of_all @ z**2)
    triples = np.array(list(combinations(range(len(z)), 3)))  # (t, 3)
    at = z[triples]
    # Chances w of each triple: Σ w = 1, Σ w z = 0, Σ w z² = 1. Some triple has none below 0, as the point (0, 1) lies within the
    # hull of all (z, z²).
    chances = np.linalg.solve(at[:, None] ** np.arange(3)[:, None], np.array([[1.0], [0.0], [1.0]]))[..., 0]
    miss = sum(((chances * at**power).sum(1) - of_all @ z**power) ** 2 for power in (3, 4))
    # Rounded, so that of triples that mirror each other the first is taken on every machine.
    best = np.where(chances.min(1) < -1e-9, np.inf, np.round(miss, 9)).argmin()
    kept = chances[best].clip(0)
    some = kept > 0
    return Foreseen(values[triples[best][some]], kept[some] / kept.sum())


def for_estimate(memory: ConditionedModel, found: Foreseen) -> Foreseen:
    """As few results as the release makes its estimates of."""
    if memory.release.inference.estimated_from == 3:
        return three_results(found)
    return low_and_high(found, tries_shared_values(memory))


def draw_results(memory: ConditionedModel, density: np.ndarray, column: int, levels: np.ndarray) -> np.ndarray:
    """(m,) the result at each of (m,) `levels` of the distribution, a recorded value. density: (m, V), or (V,) of all."""
    scale = memory.scale
    edges = cumulative(_logits(np.broadcast_to(density, (len(levels), density.shape[-1]))))
    rank = rank_at(edges, torch.tensor(levels, dtype=edges.dtype)[:, None])[:, 0]
    return scale.ordered[0, column, position_at(rank, scale.count[0, column])].numpy()


def chances_of(memory: ConditionedModel, density: np.ndarray, column: int) -> Foreseen:
    """Every different value of a column and its chance. density: (V,)."""
    scale = memory.scale
    count = int(scale.count[0, column])
    values, times = np.unique(scale.ordered[0, column, :count].numpy(), return_counts=True)
    # Of n ordered values, a value recorded k times fills k/n of the ranks; its chance is the density's share of them.
    ends = torch.tensor(np.cumsum(times) / count)
    up_to = probability_up_to(cumulative(_logits(density)), ends).numpy()
    return Foreseen(values, np.diff(up_to, prepend=0.0))


def words_for(chances: np.ndarray) -> list[str]:
    """What results of these chances, ascending, are called: by where the middle of each lies, no two alike if words suffice."""
    middle = np.cumsum(chances) - chances / 2
    apart = np.abs(middle[:, None] - np.array(POINTS))  # (m, POINTS)
    ways = combinations(range(len(WORDS)), len(middle))
    nearest = min(ways, key=lambda way: apart[range(len(way)), way].sum(), default=None)
    index = apart.argmin(1) if nearest is None else nearest
    likely = ["under 1%" if chance < 0.01 else f"{chance:.0%}" for chance in chances]
    return [f"{WORDS[i]} ({chance} likely)" for i, chance in zip(index, likely, strict=True)]


def is_too_rare(memory: ConditionedModel, column: int) -> bool:
    """Whether the test is recorded in too few of the rows that were read to say anything of its results."""
    return int(memory.scale.count[0, column]) < FEWEST_RECORDED


def _logits(density: np.ndarray) -> torch.Tensor:
    # 0 becomes a number whose logarithm is finite.
    return torch.from_numpy(np.array(density, dtype=np.float32)).clamp_min(1e-12).log()

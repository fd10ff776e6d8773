"""What a test may show one patient: the results that the model foresees, and how likely each is.

The model gives probabilities over the ranks of a column (model/results.py). Here they become a few results on the
cohort's own scale, values that somebody in the cohort has: nobody has 2.4 children.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from l2m_core.answering.engine import ConditionedModel
from l2m_core.model.columns import Columns
from l2m_core.model.results import POINTS, cumulative, position_at, probability_up_to, rank_at, results_to_try

FEWEST_RECORDED = 10  # rows that have a test; of a rarer one nothing is foreseen
WORDS = ("very low", "low", "rather low", "typical", "rather high", "high", "very high")  # of the results at POINTS


@dataclass(frozen=True)
class Foreseen:
    """values: (m,) results as the cohort encodes them, ascending; chances: (m,) how likely each is, 1 in all."""

    values: np.ndarray
    chances: np.ndarray


def foresee(memory: ConditionedModel, density: np.ndarray, columns: Sequence[int]) -> list[Foreseen | None]:
    """density: (d, V) probabilities over each column's ranks; one for each of `columns`, None: too rarely recorded."""
    scale, features = scale_of(memory), torch.tensor(columns).view(1, 1, -1)
    tried = results_to_try(_logits(density[list(columns)])[None, None], scale, features)
    values, chances = (tensor[0, 0].double().numpy() for tensor in tried)
    found: list[Foreseen | None] = []
    for column, value, chance in zip(columns, values, chances, strict=True):
        # Two points may fall on one value, which then has the chance of both.
        different, which = np.unique(value[chance > 0], return_inverse=True)
        merged = np.bincount(which, chance[chance > 0])
        is_rare = int(scale.count[0, column]) < FEWEST_RECORDED
        found.append(None if is_rare else Foreseen(different.astype(np.float32), merged / merged.sum()))
    return found


def draw_results(memory: ConditionedModel, density: np.ndarray, column: int, levels: np.ndarray) -> np.ndarray:
    """(m,) the result at each of (m,) `levels` of the distribution, a recorded value. density: (m, V), or (V,) of all."""
    scale = scale_of(memory)
    edges = cumulative(_logits(np.broadcast_to(density, (len(levels), density.shape[-1]))))
    rank = rank_at(edges, torch.tensor(levels, dtype=edges.dtype)[:, None])[:, 0]
    return scale.ordered[0, column, position_at(rank, scale.count[0, column])].numpy()


def chances_of(memory: ConditionedModel, density: np.ndarray, column: int) -> Foreseen:
    """Every different value of a column and its chance. density: (V,)."""
    scale = scale_of(memory)
    count = int(scale.count[0, column])
    values, times = np.unique(scale.ordered[0, column, :count].numpy(), return_counts=True)
    # Of n ordered values, a value recorded k times fills k/n of the ranks; its chance is the density's share of them.
    ends = torch.tensor(np.cumsum(times) / count)
    up_to = probability_up_to(cumulative(_logits(density)), ends).numpy()
    return Foreseen(values, np.diff(up_to, prepend=0.0))


def words_for(chances: np.ndarray) -> list[str]:
    """What results of these chances, ascending, are called: by where the middle of each lies."""
    middle = np.cumsum(chances) - chances / 2
    index = np.abs(middle[:, None] - np.array(POINTS)).argmin(1)
    return [f"{WORDS[i]} ({chance:.0%} likely)" for i, chance in zip(index, chances, strict=True)]


def scale_of(memory: ConditionedModel) -> Columns:
    """The values by whose ranks results are foreseen: those of the rows that were read, as one task."""
    # The first task has all the rows that were read; the others differ in the coding of classes, or have fewer rows.
    columns = memory.memories[0].columns
    assert isinstance(columns, Columns)
    return replace(columns, **{name: tensor[:1].cpu() for name, tensor in vars(columns).items()})


def is_too_rare(memory: ConditionedModel, column: int) -> bool:
    """Whether the test is recorded in too few of the rows that were read to say anything of its results."""
    return int(scale_of(memory).count[0, column]) < FEWEST_RECORDED


def _logits(density: np.ndarray) -> torch.Tensor:
    # 0 becomes a number whose logarithm is finite.
    return torch.from_numpy(np.array(density, dtype=np.float32)).clamp_min(1e-12).log()

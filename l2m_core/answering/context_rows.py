"""Which rows of a long cohort are read: of each class its share, evenly spread; measured by `train long_cohorts`.

Several short readings tell as much as one long one, in less time, since each row reads all others of its part. So rows may be
read in even parts, and the answers are averaged as log probabilities.
"""

from __future__ import annotations

import torch
from torch import Tensor

from l2m_core.cohort import Cohort

MOST_ROWS = 2048
"""More rows told held-out tasks nothing; a model that was trained on more reads as many as it was trained on."""


def even_rows(y: Tensor, most: int) -> Tensor:
    """The indices of at most `most` of the outcomes y: (N,), in rising order."""
    if len(y) <= most:
        return torch.arange(len(y))
    # Equal steps through the rows sorted by outcome: every class, or every part of a continuous outcome, keeps its share.
    by_outcome = y.argsort(stable=True)
    return by_outcome[torch.linspace(0, len(y) - 1, most, dtype=torch.float64).round().long()].sort().values


def even_parts(y: Tensor, count: int) -> list[Tensor]:
    """The indices of the outcomes y: (N,), in so many even parts, each in rising order."""
    by_outcome = y.argsort(stable=True)
    # Every `count`th row of those sorted by outcome, so that each part is like the whole.
    return [by_outcome[number::count].sort().values for number in range(count)]


def shorten(cohort: Cohort, most: int) -> Cohort:
    """The cohort with at most `most` of its rows."""
    return cohort.rows(even_rows(torch.from_numpy(cohort.y.copy()), most).numpy())

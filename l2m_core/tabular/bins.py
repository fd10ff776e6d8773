"""Columns cut into bins of about as many rows each, at the cuts that scikit-learn's boosted trees would make.

Theirs (since 1.8) sort a column of weighted rows again for each cut, which takes longer than the trees. Columns that are bins
already they cut between each two, so that the trees are the same. Only where no row of the cohort fell into a bin may a new
row that does go the other way.
"""

from __future__ import annotations

import numpy as np

MOST_BINS = 63
"""Of a column, beside the bin of what is not known."""


class Bins:
    """Learned from (n, d) numbers, NaN where unknown, and (n,) weights above 0. left_alone: (d,) columns of codes, not cut."""

    def __init__(self, columns: np.ndarray, weights: np.ndarray, left_alone: np.ndarray):
        self._cuts = {int(j): _cuts(columns[:, j], weights) for j in np.flatnonzero(~left_alone)}

    def of(self, columns: np.ndarray) -> np.ndarray:
        """(n, d) → (n, d): the number of each value's bin, NaN where unknown; codes as they are."""
        binned = columns.copy()
        for j, cuts in self._cuts.items():
            known = ~np.isnan(columns[:, j])
            binned[known, j] = np.searchsorted(cuts, columns[known, j])
        return binned


def _cuts(column: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Between each two values, or, where these are too many, at quantiles of the weighted rows."""
    known = ~np.isnan(column)
    numbers = column[known].astype(np.float64)  # between two of 32 bits there may be no other
    order = np.argsort(numbers)
    values, reached = numbers[order], np.cumsum(weights[known][order])  # (n,): sorted, and the weight up to each
    distinct = np.unique(values)
    if len(distinct) <= MOST_BINS:
        return (distinct[:-1] + distinct[1:]) / 2
    wanted = np.linspace(0, 100, MOST_BINS + 1)[1:-1] / 100 * reached[-1]  # (MOST_BINS - 1,)
    last = len(values) - 1
    first = np.searchsorted(reached, wanted).clip(max=last)
    # A quantile that the rows reach exactly lies in the middle between two.
    passed = reached[first] - wanted > np.finfo(np.float64).eps
    cuts = np.unique(np.where(passed, values[first], (values[first] + values[(first + 1).clip(max=last)]) / 2))
    below = np.searchsorted(values, cuts, side="right")  # rows up to each cut
    return cuts[np.diff(below, prepend=0) > 0]

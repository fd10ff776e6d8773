"""What all methods do to a cohort first: row order, checks, standardisation, splits, random acquisitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from l2m_core.acquire.random_order import random_positions
from l2m_core.errors import CohortError
from l2m_core.model.columns import is_rounding
from l2m_core.tabular.predictions import CohortLike, known_cells

MOST_LEVELS = 12
"""Levels of a category that get a column of their own; rarer ones share "none of these"."""
LARGEST_SCORE = 5.0
"""Standardised values are clipped here, so that one mistyped value cannot rule a fit."""


@dataclass(frozen=True)
class Context:
    """A cohort's arrays in an order of rows that depends on their contents only."""

    x: np.ndarray
    """(N, d) float32, NaN where not recorded"""
    y: np.ndarray
    """(N,) int64 class codes, or float32"""
    kind: str
    n_classes: int
    acquirable: np.ndarray
    """(d,) bool"""
    categorical: np.ndarray
    """(d,) bool"""
    costs: np.ndarray
    """(d,) float32"""
    groups: np.ndarray
    """(d,) int64: the action that measures each feature"""
    patient: np.ndarray | None = None
    """(N,) which patient each row is of; None where each row is a patient."""

    @property
    def r(self) -> np.ndarray:
        """(N, d) bool: recorded."""
        return ~np.isnan(self.x)

    @property
    def continuous(self) -> bool:
        return self.kind == "continuous"

    def rows(self, index: np.ndarray) -> Context:
        """The same cohort with these rows only, in this order."""
        patient = None if self.patient is None else self.patient[index]
        return replace(self, x=self.x[index], y=self.y[index], patient=patient)

    @property
    def actions(self) -> list[np.ndarray]:
        """The acquirable features of each action: one feature, or those of a panel."""
        numbers = np.unique(self.groups[self.acquirable])
        return [np.flatnonzero((self.groups == number) & self.acquirable) for number in numbers]


def prepare(cohort: CohortLike) -> Context:
    """Check a cohort and put its rows in an order that does not depend on how the file was sorted."""
    x = np.asarray(cohort.x, dtype=np.float32)
    continuous = cohort.kind == "continuous"
    y = np.asarray(cohort.y, dtype=np.float32 if continuous else np.int64)
    if np.isinf(x).any():
        column = int(np.flatnonzero(np.isinf(x).any(0))[0])
        raise CohortError(f"Column {column} of the cohort holds an infinite value; remove it or leave the cell empty.")
    if len(np.unique(y)) < 2:
        raise CohortError("The outcome is the same in every row, so there is nothing to learn; add rows that differ.")
    patient = getattr(cohort, "patients", None)
    order = np.lexsort([*np.nan_to_num(x, nan=float(np.finfo(np.float32).max)).T, y])
    return Context(
        x[order],
        y[order],
        cohort.kind,
        0 if continuous else int(cohort.n_classes),
        np.asarray(cohort.acquirable, dtype=bool),
        np.asarray(cohort.categorical, dtype=bool),
        np.asarray(cohort.costs, dtype=np.float32),
        np.asarray(cohort.groups, dtype=np.int64),
        None if patient is None else np.asarray(patient)[order],
    )


def folds(context: Context, n_folds: int, random: np.random.Generator) -> np.ndarray:
    """(N,) fold of each row; each fold has the same share of every class, or of every part of the range. Rows of one
    patient share a fold."""
    y, patient = _by_patient(context)
    shuffled = random.permutation(len(y))
    ranked = shuffled[np.argsort(y[shuffled], kind="stable")]
    fold = np.empty(len(y), dtype=np.int64)
    # Each run of n_folds neighbours in outcome is spread over all folds, in its own random order.
    for start in range(0, len(y), n_folds):
        order = random.permutation(n_folds)
        members = ranked[start : start + n_folds]
        fold[members] = order[: len(members)]
    return fold[patient]


def rows_beside(context: Context, out: np.ndarray) -> np.ndarray:
    """The rows of all patients who have none among those left out."""
    patient = np.arange(len(context.y)) if context.patient is None else context.patient
    return np.flatnonzero(~np.isin(patient, patient[out]))


def _by_patient(context: Context) -> tuple[np.ndarray, np.ndarray]:
    """The outcome of each patient, the smallest of his rows, and (N,) which patient each row is of, from 0."""
    if context.patient is None:
        return context.y, np.arange(len(context.y))
    patients, patient = np.unique(context.patient, return_inverse=True)
    y = np.full(len(patients), context.y.max())
    np.minimum.at(y, patient, context.y)
    return y, patient


def held_out_split(context: Context, random: np.random.Generator, n_folds: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Row indices to train on, and one n_folds-th of the rows to choose by."""
    fold = folds(context, n_folds, random)
    return np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)


def by_action(cells: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(n, d) bool → (n, actions) bool: the actions of which any feature is marked."""
    features = np.eye(groups.max() + 1, dtype=np.float32)[groups]  # (d, actions)
    return cells.astype(np.float32) @ features > 0


def random_acquisitions(
    r: np.ndarray, acquirable: np.ndarray, groups: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """(n, d) bool: all recorded baseline cells, and what a uniformly random number of random actions uncovers.

    Only recorded cells are acquired, so a row never pretends to know what it lacks: a ⊂ r.
    """
    candidates = r & acquirable
    possible = by_action(candidates, groups)
    position = random_positions(possible, random)
    size = np.floor(random.random(len(r)) * (possible.sum(1) + 1))
    return (r & ~acquirable) | (candidates & (position < size[:, None])[:, groups])


class Encoding:
    """d features as D columns: numbers standardised, categories one column for each common level; unknown is 0.

    Means, spreads and levels come from the recorded values of the context only.
    """

    def __init__(self, context: Context):
        self.n_features = context.x.shape[1]
        levels = {j: seen_values(context.x[:, j]) for j in np.flatnonzero(context.categorical).tolist()}
        # Two levels need one column only, like a number.
        self._pairs = {j: seen for j, seen in levels.items() if len(seen) <= 2}
        self._levels = {j: common_values(context.x[:, j]) for j in levels if j not in self._pairs}
        self._numbers = np.array([j for j in range(self.n_features) if j not in self._levels], dtype=np.int64)
        numbers = context.x[:, self._numbers].astype(np.float64)
        recorded = ~np.isnan(numbers)
        count = np.maximum(recorded.sum(0), 1)
        self._mean = np.where(recorded, numbers, 0).sum(0) / count
        std = np.sqrt((np.where(recorded, numbers - self._mean, 0) ** 2).sum(0) / count)
        self._scale = np.where(is_rounding(self._mean, std), 1.0, std)
        owners = [self._numbers] + [np.full(len(levels), j) for j, levels in self._levels.items()]
        self.owner = np.concatenate(owners).astype(np.int64)
        """(D,) the feature each column belongs to"""

    @property
    def width(self) -> int:
        """D"""
        return len(self.owner)

    def values(self, x: np.ndarray) -> np.ndarray:
        """(n, D) float32, 0 where x is NaN."""
        x = np.array(x, dtype=np.float32)
        for j, seen in self._pairs.items():
            x[~np.isin(x[:, j], seen), j] = np.nan  # a level that the context lacks
        scores = np.clip((x[:, self._numbers] - self._mean) / self._scale, -LARGEST_SCORE, LARGEST_SCORE)
        columns = [np.nan_to_num(scores)]
        columns += [(x[:, j, None] == levels).astype(np.float64) for j, levels in self._levels.items()]
        return np.concatenate(columns, axis=1).astype(np.float32)

    def masked(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(n, D + d) float32: [x⊙a, a]."""
        known = known_cells(x, a)
        return np.concatenate([self.values(x) * known[:, self.owner], known], axis=1, dtype=np.float32)


def seen_values(values: np.ndarray) -> np.ndarray:
    """The different values that are not NaN, in order."""
    return np.unique(values[~np.isnan(values)])


def common_values(values: np.ndarray) -> np.ndarray:
    """The most frequent values, at most MOST_LEVELS of them, in order."""
    levels, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return levels[np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS])]

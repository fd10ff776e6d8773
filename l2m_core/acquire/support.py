"""How many rows of the cohort a statement about one patient rests on: those that have a test, overall and nearby."""

from __future__ import annotations

import numpy as np

from l2m_core.answering.engine import ConditionedModel
from l2m_core.diagnostics import SUPPORT_FLOOR

NEAR_SHARE = 0.25  # "near a patient": the nearest quarter of the cohort on what is known
FEWEST_NEAR = 10  # fewer recorded values near the patient than this is thin support
ROWS_AT_ONCE = 256  # patients compared with all context rows at a time
AVERAGE_DISAGREEMENT = 2.0  # E(u - v)² of two independent standardised values


def count_near(rows: int) -> int:
    """How many of a cohort's rows count as near a patient."""
    return max(FEWEST_NEAR, int(NEAR_SHARE * rows))


def is_thin(support: int, near: int) -> bool:
    """Whether too few rows have a test for advice on it. support: of all rows; near: of those near the patient."""
    return support < SUPPORT_FLOOR or bool(are_few(near))


def are_few(near: int | np.ndarray) -> np.ndarray | np.bool_:
    """Whether so many rows near a patient that have a test are too few."""
    return np.asarray(near) < FEWEST_NEAR


def support_of(memory: ConditionedModel, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(d,) rows with each feature recorded, in the whole cohort and near the patient x: (1, d)."""
    cohort = memory.cohort
    near = nearest_rows(memory, x, count_near(len(cohort)))[0]
    return cohort.r.sum(0), cohort.r[near].sum(0)


def nearest_rows(memory: ConditionedModel, x: np.ndarray, count: int) -> np.ndarray:
    """(n, count) context rows that are most like each patient on what is known of both, nearest first."""
    middle, scale = memory.spread
    context = _scaled(memory.cohort.x, middle, scale)  # (N, d)
    recorded = ~np.isnan(context)
    values = np.nan_to_num(context)
    count = min(count, len(context))
    nearest = np.empty((len(x), count), dtype=np.int64)
    for start in range(0, len(x), ROWS_AT_ONCE):
        part = _scaled(x[start : start + ROWS_AT_ONCE], middle, scale)
        known = ~np.isnan(part)
        # Clipped, so that one mistyped value does not decide alone who is near.
        shown = np.clip(np.nan_to_num(part), -5, 5)
        clipped = np.clip(values, -5, 5)
        # Σ over shared features of (u - v)² = Σ u² + Σ v² - 2 Σ u v, by products instead of an (n, N, d) array.
        shared = known.astype(np.float32) @ recorded.T.astype(np.float32)
        distance = (
            (shown**2 * known) @ recorded.T
            + known @ (clipped**2 * recorded).T
            - 2 * (shown * known) @ (clipped * recorded).T
        )
        # A feature that a row lacks counts as an average disagreement, so that sparse rows are not near everybody.
        distance = distance + AVERAGE_DISAGREEMENT * (known.sum(1, keepdims=True) - shared)
        nearest[start : start + ROWS_AT_ONCE] = np.argsort(distance, axis=1, kind="stable")[:, :count]
    return nearest


def _scaled(x: np.ndarray, middle: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(n, d) distances from the middle, in standard deviations; one too long for a 32-bit float is infinite."""
    with np.errstate(over="ignore"):
        return (x - middle) / scale

"""Calibration among groups of patients: each level, or each third, of what is known at the start."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from l2m_core.cohort import Cohort
from l2m_core.evidence.bootstrap import reach, wilson_interval
from l2m_core.evidence.clustering import Clustering
from l2m_core.evidence.figures import PatientGroup
from l2m_core.tables.precision import in_text

FEWEST_ROWS = 20  # asked rows of a group that is told of
PARTS = 3  # of a number


def groups_of(cohort: Cohort, rows: np.ndarray) -> list[tuple[str, str, np.ndarray]]:
    """(feature, group, (n,) bool) for every baseline feature: sex, age in thirds, and what else the schema names."""
    found = []
    for column, feature in enumerate(cohort.features):
        if feature.role != "baseline":
            continue
        values = cohort.x[rows, column]
        for name, member in _levels(feature.levels, values) if feature.levels else _thirds(values):
            if member.sum() >= FEWEST_ROWS:
                found.append((feature.name, name, member))
    return found


def _levels(levels: tuple[str, ...], values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    return ((level, values == code) for code, level in enumerate(levels))


def _thirds(values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Of the values asked, not more parts than they have different values."""
    known = values[~np.isnan(values)]
    cuts = np.unique(np.quantile(known, np.arange(1, PARTS) / PARTS)) if len(known) else np.zeros(0)
    part = np.searchsorted(cuts, values, side="left")
    for number in range(len(cuts) + 1):
        member = ~np.isnan(values) & (part == number)
        if member.any():
            low, high = (in_text(end) for end in (values[member].min(), values[member].max()))
            yield low if low == high else f"{low} to {high}", member


def calibration_of_groups(
    groups: list[tuple[str, str, np.ndarray]],
    predicted: np.ndarray,
    observed: np.ndarray,
    patient: np.ndarray,
    is_share: bool,
) -> tuple[PatientGroup, ...]:
    """predicted, observed: (n,) a probability and whether it happened; or a mean and the outcome; patient: (n,) whose it is.
    Intervals are so wide that with well calibrated predictions no group of all of them lies outside, 95 times of 100."""
    level = 1 - 0.05 / max(1, len(groups))
    clustering = Clustering.of(patient, observed - predicted)
    found = []
    for feature, name, member in groups:
        p, y = predicted[member], observed[member]
        worth = clustering.worth(member)
        if is_share:
            low, high = (float(end) for end in wilson_interval(y.mean() * worth, np.array(worth), level))
        else:
            half = reach(level) * float((y - p).std(ddof=1)) / worth**0.5
            low, high = float(y.mean()) - half, float(y.mean()) + half
        found.append(PatientGroup(feature, name, len(y), float(p.mean()), float(y.mean()), low, high))
    return tuple(found)

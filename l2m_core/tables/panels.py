"""Panels that a table suggests: columns that are recorded in the same rows, and in those only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FEWEST_EMPTY, FEWEST_RECORDED = 0.02, 0.02  # shares of the rows; a column that is nearly always there tells nothing


def recorded_together(names: Sequence[str], r: np.ndarray) -> tuple[tuple[str, ...], ...]:
    """Groups of at least two columns with the same recorded rows. r: (N, d) bool."""
    groups: dict[bytes, list[str]] = {}
    for name, recorded in zip(names, r.T, strict=True):
        share = recorded.mean() if len(recorded) else 0.0
        if FEWEST_RECORDED <= share <= 1 - FEWEST_EMPTY:
            groups.setdefault(np.packbits(recorded).tobytes(), []).append(name)
    return tuple(tuple(members) for members in groups.values() if len(members) > 1)

"""What floats cannot hold: sentences about numbers that are rounded, and about codes that may have been one too few."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from l2m_core.tables.cell_parsing import LARGEST_WHOLE, number_text

LARGEST_EXACT = 2**24  # up to here every whole number is a 32-bit float


def of_rounding(name: str, numbers: np.ndarray) -> Iterator[str]:
    """numbers: (N,) float64, which become 32-bit floats."""
    changed = (np.abs(numbers) > LARGEST_EXACT) & (numbers.astype(np.float32).astype(np.float64) != numbers)
    if changed.any():
        first = float(numbers[int(np.argmax(changed))])
        yield (
            f"Column '{name}': {int(changed.sum())} numbers above {LARGEST_EXACT:,} are rounded to 32 bits, such as "
            f"{number_text(first)} to {number_text(float(np.float32(first)))}. If they are codes, state kind: category; "
            "else use a larger unit, or subtract a constant."
        )


def of_merged_codes(name: str, numbers: np.ndarray) -> Iterator[str]:
    """numbers: (N,) float64, the codes of a category. What two of them were before, nobody can tell any more."""
    if np.nanmax(np.abs(numbers), initial=0) > LARGEST_WHOLE:
        yield (
            f"Column '{name}' is a category that came as numbers beyond {LARGEST_WHOLE:,}, of which some may have been "
            "different codes. Give it as text."
        )

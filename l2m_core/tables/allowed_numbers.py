"""Which numbers a feature may hold, and what becomes of them as 32-bit floats.

A number is allowed if a 32-bit float holds it and it lies in the range of its feature's schema; `Feature.range_text` has
that range in words. Numbers that are rounded, and codes that may have been one too few, are told in sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from l2m_core.schema import Feature
from l2m_core.tables.cell_parsing import LARGEST_WHOLE, number_text

LARGEST = float(np.finfo(np.float32).max)
LARGEST_EXACT = 2**24  # up to here every whole number is a 32-bit float
COARSE = 1e-4  # of the range of a column's numbers: what 32 bits change by more is lost for telling rows apart


def is_too_large(numbers: Any) -> Any:
    """Of a number, or of each in an array: infinite, or beyond 32 bits. NaN is not."""
    return abs(numbers) > LARGEST


def is_outside(numbers: Any, feature: Feature) -> Any:
    """Of a number, or of each in an array: below the feature's minimum or above its maximum. NaN is not."""
    low = -np.inf if feature.minimum is None else feature.minimum
    high = np.inf if feature.maximum is None else feature.maximum
    return (numbers < low) | (numbers > high)


def is_refused(numbers: Any, feature: Feature) -> Any:
    """Of a number, or of each in an array: whether the feature may not hold it. NaN, not measured, is never refused."""
    return is_too_large(numbers) | is_outside(numbers, feature)


def is_rounded(numbers: np.ndarray) -> np.ndarray:
    """(N,) bool: beyond what 32-bit floats tell apart, and changed by them. NaN is not."""
    return (np.abs(numbers) > LARGEST_EXACT) & (numbers.astype(np.float32).astype(np.float64) != numbers)


def is_vanishing(numbers: np.ndarray) -> np.ndarray:
    """(N,) bool: not 0, but 0 as a 32-bit float."""
    return (numbers != 0) & (numbers.astype(np.float32) == 0)


def lost_by_rounding(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much 32 bits change a number of each column at most, and whether that is much of the column's range.
    numbers: (N, …), NaN where not recorded."""
    lost = np.nanmax(np.abs(numbers.astype(np.float32) - numbers), axis=0, initial=0)
    spread = np.nanmax(numbers, axis=0, initial=-np.inf) - np.nanmin(numbers, axis=0, initial=np.inf)
    return lost, (spread > 0) & (lost > COARSE * spread)


def of_rounding(name: str, numbers: np.ndarray) -> Iterator[str]:
    """numbers: (N,) float64, NaN where not recorded, which become 32-bit floats."""
    vanishing = is_vanishing(numbers)
    if vanishing.any():
        first = float(numbers[int(np.argmax(vanishing))])
        yield (
            f"Column '{name}': {int(vanishing.sum())} numbers such as {number_text(first)} are so small that they become 0 "
            "in 32 bits. Use a smaller unit, or their logarithm."
        )
    changed = is_rounded(numbers)
    if changed.any():
        first = float(numbers[int(np.argmax(changed))])
        yield (
            f"Column '{name}': {int(changed.sum())} numbers above {LARGEST_EXACT:,} are rounded to 32 bits, such as "
            f"{number_text(first)} to {number_text(float(np.float32(first)))}. If they are codes, state kind: category; "
            "else use a larger unit, or subtract a constant."
        )
    lost, is_coarse = lost_by_rounding(numbers)
    if is_coarse and not (vanishing | changed).any():
        yield (
            f"Column '{name}' varies little around large numbers, so its values are rounded (by up to {lost:.3g}). Subtract a "
            "constant from it."
        )


def of_merged_codes(name: str, numbers: np.ndarray) -> Iterator[str]:
    """numbers: (N,) float64, the codes of a category. What two of them were before, nobody can tell any more."""
    if np.nanmax(np.abs(numbers), initial=0) > LARGEST_WHOLE:
        yield (
            f"Column '{name}' is a category that came as numbers beyond {LARGEST_WHOLE:,}, of which some may have been "
            "different codes. Give it as text."
        )

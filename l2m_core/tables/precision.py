"""How finely the numbers of a column are recorded, and how finely it is worth showing or changing them."""

from __future__ import annotations

import math

import numpy as np

from l2m_core.tables.cell_parsing import number_text

MOST_DECIMALS = 6  # of numbers that are written without a power of ten
SMALLEST_DECIMALS = 40  # of the smallest 32-bit numbers
NEARLY_ALL = 0.99  # of the numbers have no more decimals than those that count
USUAL = (0.05, 0.95)  # quantiles of the usual range
FINEST = 100  # steps in the usual range; finer ones tell nobody anything


def in_double(values: np.ndarray) -> np.ndarray:
    """float64 of the same shape: floats of fewer bits as they are written, 0.1 and not 0.10000000149011612."""
    exact = values.astype(np.float64)
    if not np.issubdtype(values.dtype, np.floating) or values.dtype.itemsize >= exact.itemsize:
        return exact
    found, left = exact.copy(), np.isfinite(exact) & (exact != 0)
    fewest = np.finfo(values.dtype).precision
    # Decimals of so many digits come back from their bits; three more tell all floats of that size apart.
    for digits in range(fewest, fewest + 4):
        places = digits - 1 - np.floor(np.log10(np.abs(exact, where=left, out=np.ones_like(exact))))
        up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
        written = np.rint(exact / down * up, where=left, out=np.zeros_like(exact)) / up * down
        fits = left & (written.astype(values.dtype) == values)
        found[fits], left = written[fits], left & ~fits
    return found


def in_text(value: float) -> str:
    """A number of 32 bits with the seven digits that these hold, and no more: 1234567, 0.1, 0.3333333."""
    return number_text(float(f"{value:.7g}"))


def recorded_decimals(values: np.ndarray) -> int:
    """Decimals with which nearly all numbers are written. values: (n,) numbers, NaN where not recorded."""
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return 0
    large = float(np.quantile(np.abs(numbers), USUAL[1]))
    slack = 1e-6 * np.maximum(np.abs(numbers), 1e-3 * min(large, 1.0))  # 32-bit numbers differ in the seventh digit
    most = _most_decimals(large)
    for decimals in range(most):
        if np.mean(np.abs(numbers - np.round(numbers, decimals)) <= slack) >= NEARLY_ALL:
            return decimals
    return most


def _most_decimals(large: float) -> int:
    """Six tell numbers such as 0.04 apart; of a column of 4e-8, as many more as it has zeros behind the point."""
    if not 0 < large < 1:
        return MOST_DECIMALS
    return min(SMALLEST_DECIMALS, MOST_DECIMALS - 1 - math.floor(math.log10(large)))


def usual_range(values: np.ndarray) -> tuple[float, float] | None:
    """The range of nine in ten recorded numbers; None where nothing is recorded."""
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return None
    low, high = np.quantile(numbers, USUAL)
    return float(low), float(high)


def sensible_step(values: np.ndarray) -> float:
    """A power of ten: no finer than the column is recorded, and no finer than a hundredth of its usual range."""
    found = usual_range(values)
    finest = -recorded_decimals(values)
    if found is None or found[1] <= found[0]:
        return 10.0**finest
    return 10.0 ** max(finest, math.floor(math.log10((found[1] - found[0]) / FINEST)))


def shown_decimals(values: np.ndarray) -> int:
    """Decimals with which a quantile or a limit of the column is shown."""
    return max(0, -round(math.log10(sensible_step(values))))


def number_shown(value: float, decimals: int) -> str:
    """35.7, or 1,234; never -0. What needs more than six decimals is written with a power of ten: 4.4e-08."""
    if decimals > MOST_DECIMALS:
        return f"{round(value, decimals) + 0.0:.6g}"
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text

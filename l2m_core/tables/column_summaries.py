"""What a column holds, for a person who looks it over: how much is recorded, how it is spread, a few examples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from l2m_core.tables.cell_parsing import number_text
from l2m_core.tables.column_reading import Reading
from l2m_core.tables.precision import number_shown, shown_decimals, usual_range

BARS = 12  # of a histogram
MOST_LEVELS = 8  # with a bar of their own
EXAMPLES = 3
TAILS = (0.01, 0.99)  # what lies beyond is counted in the outermost bars


@dataclass(frozen=True)
class ColumnSummary:
    """bars: rows in each bin of a number, or with each of the most frequent levels; spread: in words, what they span."""

    name: str
    kind: str
    recorded: float  # share of the rows
    distinct: int
    bars: tuple[int, ...]
    spread: str
    examples: tuple[str, ...]
    problem: str | None


def summarise_column(reading: Reading, kind: str) -> ColumnSummary:
    present = reading.present
    share = float(present.mean()) if len(present) else 0.0
    if reading.numbers is not None and kind == "number":
        bars, spread = _spread_of_numbers(reading.numbers[present])
    else:
        bars, spread = _spread_of_levels(reading.as_texts())
    return ColumnSummary(reading.name, kind, share, reading.distinct, bars, spread, _examples(reading), reading.problem)


def _spread_of_numbers(numbers: np.ndarray) -> tuple[tuple[int, ...], str]:
    usual = usual_range(numbers)
    if usual is None:
        return (), ""
    low, high = np.quantile(numbers, TAILS)
    if high <= low:
        low, high = numbers.min(), numbers.max()
    decimals = shown_decimals(numbers)
    ends = " to ".join(number_shown(end, decimals) for end in usual)
    if high <= low:
        return (len(numbers),), number_shown(float(low), decimals)
    counts, _ = np.histogram(np.clip(numbers, low, high), bins=BARS, range=(low, high))
    return tuple(int(count) for count in counts), f"usually {ends}"


def _spread_of_levels(reading: Reading) -> tuple[tuple[int, ...], str]:
    counts = reading.counts
    order = np.argsort(-counts, kind="stable")
    total = max(int(counts.sum()), 1)
    named = [f"{reading.texts[i]} {counts[i] / total:.0%}" for i in order[:2]]
    more = len(order) - len(named)
    return (
        tuple(int(counts[i]) for i in order[:MOST_LEVELS]),
        ", ".join(named) + (f" and {more} more" if more > 0 else ""),
    )


def _examples(reading: Reading) -> tuple[str, ...]:
    """The first different values of the column."""
    values = reading.values[:EXAMPLES]
    return tuple(number_text(value) if reading.numbers is not None else str(value) for value in values)

"""How the cells of a column are to be read, and the column as it was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.errors import CohortError
from l2m_core.lazy import lazy
from l2m_core.tables.allowed_numbers import is_too_large
from l2m_core.tables.cell_parsing import number_text, parse_number
from l2m_core.tables.reading_notes import CellNote, missing_notes

CENSORED_RULES = ("refuse", "limit")
UNIT_RULES = ("refuse", "drop")
PAIRS = ({0.0, 1.0}, {1.0, 2.0}, {-1.0, 1.0})  # numbers that stand for two levels


@dataclass(frozen=True)
class ReadingRules:
    """How to read cells. decimal: '.' or ',' or None (told by the cells); missing: further texts for "not recorded";
    censored: what a cell such as '<5' becomes: 'refuse' names it, 'limit' takes the limit (5) and warns; units: the same
    of '5 mg/L', of which 'drop' takes the 5 where a column has one unit;
    joined: texts of one column that are spellings of a level."""

    decimal: str | None = None
    missing: Iterable[Any] = frozenset()
    censored: str = "refuse"
    units: str = "refuse"
    joined: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self):
        if self.decimal not in (None, ".", ","):
            raise CohortError(f"decimal is {self.decimal!r}; it must be '.' or ',' (or None: told by the cells).")
        if self.censored not in CENSORED_RULES:
            raise CohortError(f"censored is {self.censored!r}; it must be one of {', '.join(CENSORED_RULES)}.")
        if self.units not in UNIT_RULES:
            raise CohortError(f"units is {self.units!r}; it must be one of {', '.join(UNIT_RULES)}.")
        if isinstance(self.missing, str):
            raise CohortError("missing must be a list of texts, such as ['-999'].")
        texts = (text.strip() if isinstance(text, str) else number_text(text) for text in self.missing)
        object.__setattr__(self, "missing", frozenset(texts))

    def stated(self) -> dict[str, Any]:
        """What was said of a table as a whole, as plain data: `ReadingRules(**rules.stated())` says the same."""
        return {
            "decimal": self.decimal,
            "missing": sorted(self.missing),
            "censored": self.censored,
            "units": self.units,
        }

    @lazy
    def missing_numbers(self) -> list[float]:
        """Those markers that are numbers: -999 also means -999.0, and -99,9 also the number -99.9."""
        signs = (".", ",") if self.decimal == "," else (",", ".")  # the last one counts where both read a number
        parsed = ((text, parse_number(text, sign)) for sign in signs for text in self.missing)
        return list({text: number for text, number in parsed if number is not None}.values())


DEFAULT_RULES = ReadingRules()


def _no_codes() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Reading:
    """One column, read. Numbers, or texts by code; -1 and NaN are missing."""

    name: str
    numbers: np.ndarray | None = None  # (N,) float64
    codes: np.ndarray = field(default_factory=_no_codes)  # (N,) into texts
    texts: tuple[str, ...] = ()
    problem: str | None = None
    warnings: tuple[str, ...] = ()
    decimal: str | None = None  # evidence: '.', ',', 'either' (in doubt, which is its problem), None (no sign at all)
    notes: tuple[CellNote, ...] = ()  # how cells were read
    unit: str = ""  # that stood behind its numbers
    perhaps_missing: tuple[str, ...] = ()  # texts that may mean "not recorded", which nobody has said
    order: tuple[str, ...] = ()  # of the texts, where the table has one

    @lazy
    def present(self) -> np.ndarray:
        """(N,) bool"""
        if self.numbers is not None:
            return ~np.isnan(self.numbers)
        return self.codes >= 0

    @lazy
    def values(self) -> np.ndarray:
        """The distinct numbers, or texts."""
        if self.numbers is not None:
            return pd.unique(self.numbers[self.present])
        return np.array(self.texts, dtype=object)

    @property
    def distinct(self) -> int:
        return len(self.values)

    @lazy
    def counts(self) -> np.ndarray:
        """(texts,) cells that hold each text."""
        return cells_of_each(self.texts, self.codes)

    def rows(self, index: np.ndarray) -> Reading:
        """These rows only, with the texts that they hold."""
        if self.numbers is not None:
            return replace(self, numbers=self.numbers[index])
        codes = self.codes[index]
        present, compact = np.unique(codes[codes >= 0], return_inverse=True)
        fresh = np.full(len(codes), -1)
        fresh[codes >= 0] = compact
        return replace(self, codes=fresh, texts=tuple(self.texts[i] for i in present))

    def as_texts(self) -> Reading:
        """The same with numbers as texts, so that coded numbers can be levels."""
        if self.numbers is None:
            return self
        codes, values = pd.factorize(self.numbers)
        return replace(self, numbers=None, codes=codes, texts=tuple(number_text(value) for value in values))


def cells_of_each(texts: Sequence[str], codes: np.ndarray) -> np.ndarray:
    """(texts,) how many cells hold each text. codes: (N,) into texts, -1 where missing."""
    return np.bincount(codes[codes >= 0], minlength=len(texts))


def with_numbers(reading: Reading, values: np.ndarray, rows, rules) -> Reading:
    """The reading of a column of numbers; one that is infinite, or too large for 32 bits, is refused by its cell."""
    notes = (*reading.notes, *missing_notes(_markers_in(values, rules)))
    values = without_markers(values, rules)
    reading = replace(reading, numbers=values, notes=notes)
    bad = is_too_large(values)
    if not bad.any():
        return reading
    row = rows[int(np.argmax(bad))]
    return replace(
        reading,
        problem=f"Column '{reading.name}', row {row}: the number is infinite or beyond 3.4e38 "
        f"({int(bad.sum())} such cell{'s' if bad.sum() > 1 else ''}). Correct it, or leave it empty.",
    )


def _markers_in(values: np.ndarray, rules: ReadingRules) -> dict[str, int]:
    """Numbers that stand for "not recorded", as texts, with their cells."""
    found = {number_text(marker): int((values == marker).sum()) for marker in rules.missing_numbers}
    return {text: cells for text, cells in found.items() if cells}


def without_markers(values: np.ndarray, rules: ReadingRules) -> np.ndarray:
    """Numbers, NaN where one stands for "not recorded"."""
    if not rules.missing_numbers:
        return values
    with np.errstate(over="ignore"):
        markers = np.array(rules.missing_numbers).astype(values.dtype)
    return np.where(np.isin(values, markers), np.nan, values)

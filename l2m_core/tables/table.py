"""A table before anything in it is understood: named columns of one length, within limits of size.

CSV, Excel workbooks, Parquet and DataFrames all become a `Table`; `column_parsing` then says what its cells mean.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from l2m_core.errors import CohortError
from l2m_core.schema import LONGEST_NAME

SEPARATOR = "\0"  # between the cells of a stored column; a file that holds this character is refused


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass(frozen=True)
class Limits:
    """What is read at most. `cells` is what a CSV of `megabytes` could hold; it bounds what Parquet can unfold into."""

    megabytes: int = 50
    rows: int = 200_000
    columns: int = 500
    measurements: int = 1_000_000  # rows of a CSV that has one for each of them, and not for each patient
    cells: int = 25_000_000

    @property
    def size(self) -> int:
        return self.megabytes * 1_000_000


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class TextColumn:
    """Cells of one column in one string: about the size they have in the file, unlike a list of Python strings."""

    joined: str
    length: int
    understood: bool = False  # the cells come from a stored cohort: what they mean was settled when it was stored
    order: tuple[str, ...] = ()  # of the texts, where the table has one: an ordered Categorical
    are_levels: bool = False  # as the table says, whatever the texts look like: a Categorical of numbers

    @classmethod
    def of(cls, cells: Sequence[str], order: Sequence[str] = (), are_levels: bool = False) -> TextColumn:
        return cls(SEPARATOR.join(cells), len(cells), order=tuple(order), are_levels=are_levels)

    def cells(self) -> list[str]:
        return self.joined.split(SEPARATOR) if self.length else []


@dataclass(frozen=True)
class NumberColumn:
    """A column that came as numbers (from a DataFrame, Parquet or a workbook); NaN where missing."""

    values: np.ndarray  # (N,) float64

    def cells(self) -> list[float | None]:
        """Numbers, so that no decimal sign is looked for in them; None where missing."""
        return [None if number != number else number for number in self.values.tolist()]


@dataclass(frozen=True)
class RefusedColumn:
    """A column that no cohort can use (dates, lists …): an error only if it is not ignored."""

    problem: str


Column = TextColumn | NumberColumn | RefusedColumn


READING = 2
"""Rises whenever a file's cells are read otherwise than before. 1: a minus among signs was no result, and codes such as
250.1 and 250.10 were one level."""


@dataclass(frozen=True)
class Table:
    """Named columns of one length. `row_numbers` is how messages call each row: in a CSV the header is row 1."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    row_numbers: np.ndarray  # (N,) int64
    warnings: tuple[str, ...] = ()
    name: str = "cohort"
    delimiter: str | None = None
    repeated: frozenset[str] = frozenset()  # names that stood more than once in the header
    encoding: str | None = None  # of a file of text, in words
    sheet: str | None = None  # of a workbook
    reading: int = READING  # which version of the rules its cells were read by
    left_out: frozenset[str] = frozenset()  # columns of measurements that are none of patients

    @property
    def rows(self) -> int:
        return len(self.row_numbers)

    def how_read(self) -> list[str]:
        """How a file of text or a workbook was taken apart, in sentences."""
        if self.sheet is not None:
            return [f"Read from the sheet '{self.sheet}' of an Excel workbook."]
        if self.delimiter is None:
            return []
        return [f"Read as {self.encoding}, with columns separated by {DELIMITERS[self.delimiter]}."]

    def column(self, name: str) -> Column:
        return self.columns[self.names.index(name)]


# Size


def check_width(columns: int, limits: Limits):
    if columns > limits.columns:
        raise CohortError(
            f"The table has {columns:,} columns; at most {limits.columns} are read. Keep the ones that matter."
        )


def check_size(rows: int, columns: int, limits: Limits):
    check_width(columns, limits)
    if rows > limits.rows:
        raise CohortError(
            f"The table has {rows:,} rows; at most {limits.rows:,} are read. Keep those of a random sample of the patients."
        )
    if rows * columns > limits.cells:
        raise CohortError(f"The table has {rows * columns:,} cells; at most {limits.cells:,} are read.")
    if rows == 0 or columns == 0:
        raise CohortError("The table is empty. It needs at least ten rows, an outcome and a feature.")


# Names


def clean_names(header: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str], list[str]]:
    """Unique, visible names; those that stood there more than once; and a warning for each repair."""
    names: list[str] = []
    warnings: list[str] = []
    cleaned_header = [_clean_name(written) for written in header]
    taken = {name for name in cleaned_header if name}
    for number, (written, name) in enumerate(zip(header, cleaned_header, strict=True), 1):
        if len(name) > LONGEST_NAME:
            raise CohortError(f"The name of column {number} has {len(name):,} characters; at most {LONGEST_NAME}.")
        if not name:
            name = unused_name(f"column {number}", taken)
            warnings.append(f"Column {number} has no name; it is called '{name}'.")
        elif name in names:
            repeated, name = name, unused_name(f"{name} (2)", taken, name)
            warnings.append(f"The name '{repeated}' appears twice; column {number} is called '{name}'.")
        elif name != written.strip():
            warnings.append(f"Hidden characters were removed from the name of column {number}: '{name}'.")
        taken.add(name)
        names.append(name)
    return tuple(names), frozenset(name for name in names if cleaned_header.count(name) > 1), warnings


def _clean_name(written: str) -> str:
    """Composed, on one line, without characters that are invisible or turn the text around."""
    text = unicodedata.normalize("NFC", written)
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cs"))
    return re.sub(r"\s+", " ", text).strip()


def unused_name(wanted: str, taken: Container[str], base: str | None = None) -> str:
    """The name that is wanted, with a number behind it where it is taken."""
    number = 2
    while wanted in taken:
        number += 1
        wanted = f"{base or wanted} ({number})"
    return wanted

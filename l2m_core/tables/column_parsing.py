"""What the texts of one column mean: numbers, levels, or something that needs a person's decision.

Nothing is guessed silently. A column that cannot be taken as it stands carries a `problem`, a sentence that names the
column, a row and the remedy; it becomes an error only if the column is used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from l2m_core.tables.cell_parsing import (
    DATE_ADVICE,
    EPOCHS,
    LARGEST_WHOLE,
    are_epochs,
    is_compact_date,
    number_text,
)
from l2m_core.tables.column_reading import PAIRS, Reading, ReadingRules, with_numbers
from l2m_core.tables.distinct_texts import DistinctTexts
from l2m_core.tables.table import SEPARATOR, Column, NumberColumn, RefusedColumn, TextColumn

NO_LEVELS: Mapping[str, Collection[str]] = MappingProxyType({})


def read_columns(
    names: Iterable[str],
    columns: Iterable[Column],
    rows: np.ndarray,
    kinds: Mapping[str, str | None],
    rules: ReadingRules,
    levels: Mapping[str, Collection[str]] = NO_LEVELS,
) -> Iterator[tuple[str, Reading]]:
    """Each column with its name.

    kinds: for some columns, how they must be read (see `read_column`); levels: for some, texts that are levels for
    certain, whatever else they could mean.
    """
    for name, column in zip(names, columns, strict=True):
        yield name, read_column(name, column, rows, rules, kinds.get(name), levels.get(name, ()))


def read_column(
    name: str,
    column: Column,
    rows: np.ndarray,
    rules: ReadingRules,
    kind: str | None = None,
    levels: Collection[str] = (),
) -> Reading:
    """kind: 'number'; 'levels', whose texts stay as they are; 'codes', which may be numbers where no two texts merge;
    None: told by the cells."""
    if isinstance(column, RefusedColumn):
        return Reading(name, codes=np.full(len(rows), -1), problem=column.problem)
    if isinstance(column, NumberColumn):
        return _no_epochs(with_numbers(Reading(name), column.values, rows, rules), rows, kind)
    return replace(_read_texts(name, column, rows, rules, kind, levels), order=column.order)


def _read_texts(name, column: TextColumn, rows, rules, kind, levels) -> Reading:
    if column.understood and kind != "number":
        return DistinctTexts.understood(name, column, rows, rules).levels()
    if kind == "levels" or (kind is None and column.are_levels):
        return DistinctTexts.of(name, column, rows, rules, levels).levels()
    if kind == "codes":
        return _read_codes(name, column, rows, rules, levels)
    plain = _read_plain(name, column, rows, rules)
    reading = plain if plain is not None else DistinctTexts.of(name, column, rows, rules, levels).read(kind)
    return _no_epochs(reading, rows, kind)


def _no_epochs(reading: Reading, rows, kind) -> Reading:
    """Points in time are refused with advice, as dates are, unless kind: number is stated."""
    if kind is not None or reading.numbers is None or reading.problem is not None or not are_epochs(reading.numbers):
        return reading
    first = int(np.argmax(reading.present))
    return replace(
        reading,
        problem=f"Column '{reading.name}', row {rows[first]}: {number_text(reading.numbers[first])} {EPOCHS}. {DATE_ADVICE} "
        "If it is a quantity, state kind: number.",
    )


def _read_codes(name, column, rows, rules, levels) -> Reading:
    texts = DistinctTexts.of(name, column, rows, rules, levels)
    inferred = read_column(name, column, rows, rules, levels=levels)
    certain = inferred.numbers is not None and inferred.problem is None and not inferred.warnings
    if certain and (len(texts.texts) == inferred.distinct or set(inferred.values) in PAIRS):
        return inferred
    return texts.levels()


_PLAIN_ALPHABET = re.compile(r"[^0-9+\-.eE\0]")
_NO_DIGIT = re.compile(r"[^0-9\0]")
_LEADING_ZERO = re.compile(r"(?:^|\0)0\d+(?=\0|$)")
_DOT_CERTAIN = re.compile(r"(?:^|\0)(?![-+]?[1-9]\d{0,2}(?:\.\d{3})+(?:\0|$))[^\0]*\.")  # not 1.234


def _read_plain(name, column, rows, rules) -> Reading | None:
    """Numbers and blanks only, at the speed of float(): characters for which float() has no surprises."""
    joined = column.joined
    if rules.decimal == "," or _PLAIN_ALPHABET.search(joined):
        return None
    if _LEADING_ZERO.search(joined) or is_compact_date(joined.lstrip(SEPARATOR).split(SEPARATOR, 1)[0]):
        return None
    try:
        numbers = np.array([float(cell) if cell else np.nan for cell in column.cells()])
    except ValueError:
        return None
    if not _NO_DIGIT.search(joined) and np.nanmax(numbers, initial=0) > LARGEST_WHOLE:
        return None  # codes, perhaps, that floats do not tell apart
    told = "." in joined and rules.decimal is None
    if told and not _DOT_CERTAIN.search(joined):
        return None
    return with_numbers(Reading(name, decimal="." if told else None), numbers, rows, rules)

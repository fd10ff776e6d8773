"""What the texts of one column mean: numbers, levels, or something that needs a person's decision.

Nothing is guessed silently. A column that cannot be taken as it stands carries a `problem`, a sentence that names the
column, a row and the remedy; it becomes an error only if the column is used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.errors import CohortError
from l2m_core.lazy import lazy
from l2m_core.tables.allowed_numbers import is_too_large
from l2m_core.tables.cell_parsing import (
    ADVICE,
    DATE_ADVICE,
    DISGUISED,
    MISSING_AMONG_NUMBERS,
    in_need_of_advice,
    is_code,
    is_compact_date,
    is_disguised,
    is_limit,
    is_missing,
    number_text,
    parse_both,
    parse_number,
    without_limit_sign,
)
from l2m_core.tables.decimal_signs import first_in_doubt, question
from l2m_core.tables.lookalikes import both_shown, twins
from l2m_core.tables.result_signs import is_minus, is_plus, minus_is_a_result
from l2m_core.tables.table import SEPARATOR, Column, NumberColumn, RefusedColumn

LONGEST_LEVEL = 200
MOST_TWINS = 20  # pairs that a column's warnings show
CENSORED_RULES = ("refuse", "limit")
PAIRS = ({0.0, 1.0}, {1.0, 2.0}, {-1.0, 1.0})  # numbers that stand for two levels


@dataclass(frozen=True)
class Rules:
    """How to read cells. decimal: '.' or ',' or None (told by the cells); missing: further texts for "not recorded";
    censored: what a cell such as '<5' becomes: 'refuse' names it, 'limit' takes the limit (5) and warns."""

    decimal: str | None = None
    missing: Iterable[Any] = frozenset()
    censored: str = "refuse"

    def __post_init__(self):
        if self.decimal not in (None, ".", ","):
            raise CohortError(f"decimal is {self.decimal!r}; it must be '.' or ',' (or None: told by the cells).")
        if self.censored not in CENSORED_RULES:
            raise CohortError(f"censored is {self.censored!r}; it must be one of {', '.join(CENSORED_RULES)}.")
        if isinstance(self.missing, str):
            raise CohortError("missing must be a list of texts, such as ['-999'].")
        texts = (text.strip() if isinstance(text, str) else number_text(text) for text in self.missing)
        object.__setattr__(self, "missing", frozenset(texts))

    @lazy
    def missing_numbers(self) -> list[float]:
        """Those markers that are numbers: -999 also means -999.0, and -99,9 also the number -99.9."""
        signs = (".", ",") if self.decimal == "," else (",", ".")  # the last one counts where both read a number
        parsed = ((text, parse_number(text, sign)) for sign in signs for text in self.missing)
        return list({text: number for text, number in parsed if number is not None}.values())


DEFAULT_RULES = Rules()


NO_LEVELS: Mapping[str, Collection[str]] = MappingProxyType({})


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

    def as_texts(self) -> Reading:
        """The same with numbers as texts, so that coded numbers can be levels."""
        if self.numbers is None:
            return self
        codes, values = pd.factorize(self.numbers)
        return replace(self, numbers=None, codes=codes, texts=tuple(number_text(value) for value in values))


def read_columns(
    names: Iterable[str],
    columns: Iterable[Column],
    rows: np.ndarray,
    kinds: Mapping[str, str | None],
    rules: Rules,
    levels: Mapping[str, Collection[str]] = NO_LEVELS,
) -> Iterator[tuple[str, Reading]]:
    """Each column with its name.

    kinds: for some columns, how they must be read (see `read_column`); levels: for some, texts that are levels for
    certain, whatever else they could mean.
    """
    for name, column in zip(names, columns, strict=True):
        yield name, read_column(name, column, rows, rules, kinds.get(name), levels.get(name, ()))


def read_column(
    name: str, column: Column, rows: np.ndarray, rules: Rules, kind: str | None = None, levels: Collection[str] = ()
) -> Reading:
    """kind: 'number'; 'levels', whose texts stay as they are; 'codes', which may be numbers where no two texts merge;
    None: told by the cells."""
    if isinstance(column, RefusedColumn):
        return Reading(name, codes=np.full(len(rows), -1), problem=column.problem)
    if isinstance(column, NumberColumn):
        return _numbers(Reading(name), column.values, rows, rules)
    if column.understood and kind != "number":
        return _Texts.understood(name, column, rows, rules).levels()
    if kind == "levels":
        return _Texts.of(name, column, rows, rules, levels).levels()
    if kind == "codes":
        return _read_codes(name, column, rows, rules, levels)
    plain = _read_plain(name, column, rows, rules)
    return plain if plain is not None else _Texts.of(name, column, rows, rules, levels).read(kind)


def _read_codes(name, column, rows, rules, levels) -> Reading:
    texts = _Texts.of(name, column, rows, rules, levels)
    inferred = read_column(name, column, rows, rules, levels=levels)
    certain = inferred.numbers is not None and inferred.problem is None and not inferred.warnings
    if certain and (len(texts.texts) == inferred.distinct or set(inferred.values) in PAIRS):
        return inferred
    return texts.levels()


_PLAIN_ALPHABET = re.compile(r"[^0-9+\-.eE\0]")
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
    told = "." in joined and rules.decimal is None
    if told and not _DOT_CERTAIN.search(joined):
        return None
    return _numbers(Reading(name, decimal="." if told else None), numbers, rows, rules)


def _numbers(reading: Reading, values: np.ndarray, rows, rules) -> Reading:
    """With its numbers; one that is infinite, or too large for 32 bits, is refused by its cell."""
    values = without_markers(values, rules)
    reading = replace(reading, numbers=values)
    bad = is_too_large(values)
    if not bad.any():
        return reading
    row = rows[int(np.argmax(bad))]
    return replace(
        reading,
        problem=f"Column '{reading.name}', row {row}: the number is infinite or beyond 3.4e38 "
        f"({int(bad.sum())} such cell{'s' if bad.sum() > 1 else ''}). Correct it, or leave it empty.",
    )


def without_markers(values: np.ndarray, rules: Rules) -> np.ndarray:
    """Numbers, NaN where one stands for "not recorded"."""
    if not rules.missing_numbers:
        return values
    with np.errstate(over="ignore"):
        markers = np.array(rules.missing_numbers).astype(values.dtype)
    return np.where(np.isin(values, markers), np.nan, values)


@dataclass(frozen=True)
class _Found:
    """What the distinct texts are, by their index, under the decimal sign that reads most of them as numbers."""

    values: list[float | None]
    values_otherwise: list[float | None]  # under the other sign
    plain: list[int]  # numbers
    limits: list[int]  # numbers below or above what can be measured
    absent: list[int]  # words that mean "not measured" among numbers
    words: list[int]  # all others
    evidence: str | None  # of the decimal sign, as in Reading
    in_doubt: int | None  # the first text that could be two numbers
    disguised: list[int]  # no numbers, though they look like some

    @property
    def numbers(self) -> list[int]:
        return self.plain + self.limits

    @classmethod
    def of(cls, texts: list[str], decimal: str | None) -> _Found:
        limits = {i for i, text in enumerate(texts) if is_limit(text)}
        bare = [without_limit_sign(text) if i in limits else text for i, text in enumerate(texts)]
        pairs = [parse_both(text) for text in bare]
        point, comma = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        prefers_comma = decimal == "," or (decimal is None and _how_many(comma) > _how_many(point))
        values, otherwise = (comma, point) if prefers_comma else (point, comma)
        in_doubt = first_in_doubt(bare, pairs) if decimal is None else None
        evidence = "either" if in_doubt is not None else None
        if evidence is None and decimal is None and any(point != comma for point, comma in pairs):
            evidence = "," if prefers_comma else "."
        words = [i for i, value in enumerate(values) if value is None]
        absent = [i for i in words if texts[i].casefold() in MISSING_AMONG_NUMBERS]
        return cls(
            values,
            otherwise if decimal is None else [None] * len(texts),
            plain=[i for i, value in enumerate(values) if value is not None and i not in limits],
            limits=sorted(i for i in limits if values[i] is not None),
            absent=absent,
            words=[i for i in words if texts[i].casefold() not in MISSING_AMONG_NUMBERS],
            evidence=evidence,
            in_doubt=in_doubt,
            disguised=[i for i in words if is_disguised(texts[i])],
        )


def _how_many(values) -> int:
    return sum(value is not None for value in values)


@dataclass
class _Texts:
    """The distinct texts of a column and where each stands: all questions are asked once for each text."""

    name: str
    codes: np.ndarray  # (N,) into texts, -1 missing
    texts: list[str]
    rows: np.ndarray
    rules: Rules
    warnings: list[str] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)  # texts read as not recorded, with their cells

    @classmethod
    def of(cls, name, column, rows, rules, levels=()) -> _Texts:
        """levels: texts that are levels for certain, also where they could mean "not recorded"."""
        codes, cells = pd.factorize(np.array(column.cells() + [""], dtype=object)[:-1])
        stripped = [cell.strip() for cell in cells]
        certain = set(levels) - rules.missing
        if any(map(is_minus, stripped)) and minus_is_a_result(stripped):
            certain.update(text for text in stripped if is_minus(text) and text not in rules.missing)
        found: dict[str, int] = {}
        mapping = np.full(len(stripped) + 1, -1, dtype=np.int64)
        for index, text in enumerate(stripped):
            if text and (text in certain or not is_missing(text, rules.missing)):
                mapping[index] = found.setdefault(text, len(found))
        counts = np.bincount(codes[codes >= 0], minlength=len(stripped))
        dropped: Counter[str] = Counter()
        for text, count, place in zip(stripped, counts, mapping, strict=False):
            if text and place < 0 and text not in rules.missing:
                dropped[text] += int(count)
        return cls(name, mapping[codes], list(found), rows, rules, dropped=dropped)

    @classmethod
    def understood(cls, name, column, rows, rules) -> _Texts:
        """Texts that were understood before: each is a level as it stands, and only an empty one is missing."""
        codes, cells = pd.factorize(np.array(column.cells() + [""], dtype=object)[:-1])
        texts = [cell for cell in cells if cell]
        place = {text: i for i, text in enumerate(texts)}
        mapping = np.array([place.get(cell, -1) for cell in cells] + [-1], dtype=np.int64)
        return cls(name, mapping[codes], texts, rows, rules)

    def read(self, kind: str | None) -> Reading:
        if not self.texts:
            return self._reading(numbers=np.full(len(self.codes), np.nan))
        if kind is None and self._all_digits() and any(len(text) > 1 and text[0] == "0" for text in self.texts):
            self.warnings.append(
                f"Column '{self.name}' has leading zeros, so it is read as codes. "
                "If it is a number, state kind: number."
            )
            return self.levels()
        if len(self.texts) >= 5 and all(map(is_compact_date, self.texts)):
            return self._problem(f"'{self.texts[0]}' is a date. {DATE_ADVICE}", 0)
        return self._written_numbers(kind)

    def _all_digits(self) -> bool:
        return all(text.isdecimal() for text in self.texts)

    def _written_numbers(self, kind) -> Reading:
        """Decimal commas, thousands separators, detection limits, and words among numbers."""
        found = _Found.of(self.texts, self.rules.decimal)
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))
        mostly_numbers = counts[found.numbers].sum() >= counts[found.words].sum()
        remarks = len(found.plain) >= 10 and len(found.words) <= 3  # numbers, however few, beside such as 'pending'
        if found.disguised:
            first = found.disguised[0]
            advice = "." if kind == "number" else ", or state kind: category."
            return self._problem(f"'{self.texts[first]}' {DISGUISED}{advice}", first)
        if not found.plain or (kind is None and not mostly_numbers and not remarks):
            return self._words(kind, found)
        if found.words:
            return self._mixed(kind, found)
        for indices, what in ((found.limits, "the limit itself"), (found.absent, "not measured")):
            if indices:
                self.warnings.append(
                    f"Column '{self.name}': {counts[indices].sum()} cells such as '{self.texts[indices[0]]}' "
                    f"were read as {what}."
                )
        if found.limits and self.rules.censored == "refuse":
            return self._problem(
                f"'{self.texts[found.limits[0]]}' is a detection limit, not a number "
                f"({counts[found.limits].sum()} such cells). Write the number to use, leave it empty, "
                "or take the limits themselves (cells such as <5: censored='limit').",
                found.limits[0],
            )
        if found.in_doubt is not None:
            problem = self._problem(question(self.texts[found.in_doubt]), found.in_doubt)
            return replace(problem, decimal=found.evidence)
        values = np.array([np.nan if value is None else value for value in found.values])
        reading = self._reading(decimal=found.evidence)
        return _numbers(reading, np.append(values, np.nan)[self.codes], self.rows, self.rules)

    def _mixed(self, kind, found) -> Reading:
        """Mostly numbers, and some cells that are not."""
        first = found.words[0]
        if all(found.values_otherwise[i] is not None for i in found.words):
            sentence = (
                f"'{self.texts[first]}' and other cells use different decimal signs. Use one in the whole column."
            )
            return self._problem(sentence, first)
        special = self._special(found.words)
        if special is not None:
            return special
        if kind is None and len(found.words) >= 3 and all(is_code(self.texts[i]) for i in found.words):
            self.warnings.append(
                f"Column '{self.name}' mixes numbers and texts such as '{self.texts[first]}', "
                "so it is read as categories."
            )
            return self.levels()
        return self._problem(
            f"'{self.texts[first]}' is not a number, unlike most cells of the column. "
            "Correct it, leave it empty, or state kind: category.",
            first,
        )

    def _words(self, kind, found) -> Reading:
        special = self._special(range(len(self.texts)))
        if special is not None:
            return special
        if kind == "number":
            return self._problem(f"'{self.texts[0]}' is not a number, unlike what the schema states.", 0)
        if found.limits:
            self.warnings.append(
                f"Column '{self.name}': cells such as '{self.texts[found.limits[0]]}' are read as categories, "
                "not as limits."
            )
        return self.levels()

    def _special(self, indices) -> Reading | None:
        """Dates, pairs such as 120/80, and numbers with their unit are refused with advice, if they are the rule."""
        needs = {i: need for i in indices if (need := in_need_of_advice(self.texts[i])) is not None}
        for need, advice in ADVICE.items():
            such = [i for i in needs if needs[i] == need]
            if such and len(such) * 2 >= len(indices):
                return self._problem(f"'{self.texts[such[0]]}' {advice}", such[0])
        return None

    def levels(self) -> Reading:
        """Texts as they are; those that look the same stay apart, with a warning."""
        self._tell_of_signs()
        for twin, text in islice(twins(self.texts), MOST_TWINS):
            first, second = both_shown(twin, text)
            self.warnings.append(
                f"Column '{self.name}' holds {first} and {second}, which are read as two different levels."
            )
        return self._reading(codes=self.codes, texts=tuple(self.texts))

    def _tell_of_signs(self):
        """What was read as not recorded where it could be a result, and a minus that could be none."""
        signs = [text for text in self.texts if is_plus(text)]
        dropped = {text: cells for text, cells in self.dropped.items() if signs or is_minus(text)}
        if dropped:
            cells = ", ".join(f"'{text}' ({count})" for text, count in islice(dropped.items(), 5))
            self.warnings.append(
                f"Column '{self.name}': {sum(dropped.values())} cells were read as not recorded: {cells}. "
                "If one of these is a result, state it among the levels in the schema."
            )
        minus = [i for i, text in enumerate(self.texts) if is_minus(text)]
        if minus and signs and any(text.isalpha() for text in self.texts):
            self.warnings.append(
                f"Column '{self.name}': {int(np.isin(self.codes, minus).sum())} cells '{self.texts[minus[0]]}' are read "
                f"as a result, as they stand beside '{signs[0]}'. If they mean not recorded, say so "
                f"(missing=['{self.texts[minus[0]]}'])."
            )

    def _reading(self, **content) -> Reading:
        return Reading(self.name, warnings=tuple(self.warnings), **content)

    def _problem(self, sentence, index) -> Reading:
        row = self.rows[int(np.argmax(self.codes == index))]
        return self._reading(
            codes=self.codes, texts=tuple(self.texts), problem=f"Column '{self.name}', row {row}: {sentence}"
        )

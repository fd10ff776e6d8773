"""What the texts of one column mean: numbers, levels, or something that needs a person's decision.

Nothing is guessed silently. A column that cannot be taken as it stands carries a `problem`, a sentence that names the
column, a row and the remedy; it becomes an error only if the column is used.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.errors import CohortError
from l2m_core.frames import DATE_ADVICE, number_text
from l2m_core.reading import SEPARATOR, Column, NumberColumn, RefusedColumn, TextColumn

MISSING = frozenset(
    ("", "na", "n/a", "#n/a", "n.a.", "nan", "<na>", "null", "?", "-", "--", "\u2013", "\u2014", ".", "#null!")
)
# Words that mean "not measured" among numbers, but may well be a level among words.
MISSING_AMONG_NUMBERS = frozenset(
    ("none", "missing", "unknown", "not done", "not measured", "not available", "nil", "n.d.", "nd")
)
LARGEST = float(np.finfo(np.float32).max)
LONGEST_LEVEL = 200
CENSORED_RULES = ("refuse", "limit")


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

    @cached_property
    def missing_numbers(self) -> list[float]:
        """Those markers that are numbers: -999 also means -999.0."""
        parsed = (parse_number(text) for text in self.missing)
        return [number for number in parsed if number is not None]


DEFAULT_RULES = Rules()


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
    decimal: str | None = None  # evidence: '.', ',', 'either' (1,234 or 1.234 could be both), None (no sign at all)

    @cached_property
    def present(self) -> np.ndarray:
        """(N,) bool"""
        if self.numbers is not None:
            return ~np.isnan(self.numbers)
        return self.codes >= 0

    @cached_property
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
    names: Iterable[str], columns: Iterable[Column], rows: np.ndarray, kinds: Mapping[str, str | None], rules: Rules
) -> Iterator[tuple[str, Reading]]:
    """Each column with its name, as soon as it is certain; one that could be read in two ways follows the others.

    kinds: for some columns, that they must be numbers ('number') or that their texts are levels ('levels').
    """
    undecided: list[tuple[str, TextColumn]] = []
    evidence: set[str] = set()
    for name, column in zip(names, columns, strict=True):
        reading = read_column(name, column, rows, rules, kinds.get(name))
        if reading.decimal == "either" and isinstance(column, TextColumn):
            undecided.append((name, column))
        else:
            evidence.update(reading.decimal or ())
            yield name, reading
    for name, column in undecided:
        if len(evidence) == 1:
            (sign,) = evidence
            yield name, read_column(name, column, rows, replace(rules, decimal=sign), kinds.get(name))
        else:
            reading = read_column(name, column, rows, rules, kinds.get(name))
            certain = not evidence and "," not in column.joined  # 1.234 in a file without any comma
            yield name, reading if certain else replace(reading, problem=_undecided(name, column, rows))


def read_column(name: str, column: Column, rows: np.ndarray, rules: Rules, kind: str | None = None) -> Reading:
    if isinstance(column, RefusedColumn):
        return Reading(name, codes=np.full(len(rows), -1), problem=column.problem)
    if isinstance(column, NumberColumn):
        return _numbers(Reading(name), column.values, rows, rules)
    if kind == "levels":
        inferred = read_column(name, column, rows, rules)  # levels that are all numbers are written in one way
        certain = inferred.numbers is not None and inferred.problem is None and not inferred.warnings
        return inferred if certain else _Texts.of(name, column, rows, rules).levels()
    plain = _read_plain(name, column, rows, rules)
    return plain if plain is not None else _Texts.of(name, column, rows, rules).read(kind)


def _read_plain(name, column, rows, rules) -> Reading | None:
    """Numbers and blanks only, at the speed of float(): characters for which float() has no surprises."""
    joined = column.joined
    if rules.decimal == "," or _PLAIN_ALPHABET.search(joined):
        return None
    if _LEADING_ZERO.search(joined) or _COMPACT_DATE.match(joined.lstrip(SEPARATOR)):
        return None
    try:
        numbers = np.array([float(cell) if cell else np.nan for cell in column.cells()])
    except ValueError:
        return None
    decimal = ("." if _DOT_CERTAIN.search(joined) else "either") if "." in joined and not rules.decimal else None
    return _numbers(Reading(name, decimal=decimal), numbers, rows, rules)


# Cells

_NUMBER = {
    ".": re.compile(r"[-+]?(?:\d+|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:[ ']\d{3})+)?(?:\.\d*)?(?:[eE][-+]?\d+)?"),
    ",": re.compile(r"[-+]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+|[1-9]\d{0,2}(?:[ ']\d{3})+)?(?:,\d*)?(?:[eE][-+]?\d+)?"),
}
_PLAIN_ALPHABET = re.compile(r"[^0-9+\-.eE\0]")
_LEADING_ZERO = re.compile(r"(?:^|\0)0\d+(?=\0|$)")
_DOT_CERTAIN = re.compile(r"(?:^|\0)(?![-+]?[1-9]\d{0,2}(?:\.\d{3})+(?:\0|$))[^\0]*\.")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(?:([.,])\d{3})(?:\1\d{3})*")
_CENSORED = re.compile(r"[<>\u2264\u2265]=?\s*")
_UNIT = re.compile(
    r"[-+]?\d[\d.,]*\s*(?:[%*!#\u2020\u2021]|[a-zA-Z\u00b5\u03bc\u00b0][^\d\s]*(?:/[^\d\s]+)?)"
    r"|[$\u20ac\u00a3\u00a5]\s*\d[\d.,]*|\d[\d.,]*\s*[$\u20ac\u00a3\u00a5]|\(\d[\d.,]*\)"
)
_PAIR = re.compile(r"\d+(?:[.,]\d+)?\s*/\s*\d+(?:[.,]\d+)?")
_DATES = (
    re.compile(r"(?:1[6-9]|2[0-2])\d\d([-/.])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?:[T ].*)?"),
    re.compile(r"(?:0?[1-9]|[12]\d|3[01])([-/.])(?:0?[1-9]|[12]\d|3[01])\1(?:\d\d|(?:1[6-9]|2[0-2])\d\d)(?:[T ,].*)?"),
    re.compile(r"(?i)\d{1,2}[- .]*(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-., ]+\d{2,4}(?:[T ,].*)?"),
    re.compile(
        r"(?i)(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-. ]+\d{1,2},?[-. ]+\d{2,4}(?:[T ,].*)?"
    ),
    re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:\s*[aApP][mM])?"),
)
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"[A-Za-z]{1,3}\d[\w.]*")  # such as V57 or E11.9 among numbers
_BEGINS_AS_NUMBER_OR_MONTH = re.compile(
    r"(?i)[-+($\u20ac\u00a3\u00a5]?\s*\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
)
_COMPACT_DATE = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")


def parse_number(text: str, decimal: str = ".") -> float | None:
    """The number that a text writes, with thousands separated or not; None if it is none (inf and nan are none)."""
    text = text.strip()
    if not text.isascii():
        text = _in_ascii(text)
    if not _NUMBER[decimal].fullmatch(text) or not _DIGIT.search(text):
        return None
    text = text.replace(" ", "").replace("'", "")
    text = text.replace(",", "") if decimal == "." else text.replace(".", "").replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


def _in_ascii(text: str) -> str:
    """Digits of any script, the true minus, narrow blanks and typographic apostrophes as their plain forms."""
    text = unicodedata.normalize("NFKC", text).replace("\u2212", "-").replace("\u2019", "'")
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)


def is_missing(text: str, rules: Rules = DEFAULT_RULES) -> bool:
    stripped = text.strip()
    return stripped.casefold() in MISSING or stripped in rules.missing


def is_date(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in _DATES)


def _undecided(name, column, rows) -> str:
    cells = column.cells()
    first = next(i for i, cell in enumerate(cells) if _GROUPED.fullmatch(cell.strip()))
    cell = cells[first].strip()
    return (
        f"Column '{name}', row {rows[first]}: '{cell}' could be {cell.replace(',', '').replace('.', '')} or "
        f"{cell.replace(',', '.')}. State decimal='.' or decimal=','."
    )


def _numbers(reading: Reading, values: np.ndarray, rows, rules) -> Reading:
    """With its numbers; one that is infinite, or too large for 32 bits, is refused by its cell."""
    if rules.missing_numbers:
        values = np.where(np.isin(values, rules.missing_numbers), np.nan, values)
    reading = replace(reading, numbers=values)
    bad = np.abs(values) > LARGEST
    if not bad.any():
        return reading
    row = rows[int(np.argmax(bad))]
    return replace(
        reading,
        problem=f"Column '{reading.name}', row {row}: the number is infinite or beyond 3.4e38 "
        f"({int(bad.sum())} such cell{'s' if bad.sum() > 1 else ''}). Correct it, or leave it empty.",
    )


@dataclass
class _Texts:
    """The distinct texts of a column and where each stands: all questions are asked once for each text."""

    name: str
    codes: np.ndarray  # (N,) into texts, -1 missing
    texts: list[str]
    rows: np.ndarray
    rules: Rules
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, name, column, rows, rules) -> _Texts:
        codes, cells = pd.factorize(np.array(column.cells() + [""], dtype=object)[:-1])
        stripped = [cell.strip() for cell in cells]
        levels: dict[str, int] = {}
        mapping = np.full(len(stripped) + 1, -1, dtype=np.int64)
        signs = {text for text in stripped if text and text != "-"}
        minus_is_a_level = bool(signs) and all(set(text) == {"+"} for text in signs)
        for index, text in enumerate(stripped):
            if not is_missing(text, rules) or (minus_is_a_level and text == "-"):
                mapping[index] = levels.setdefault(text, len(levels))
        return cls(name, mapping[codes], list(levels), rows, rules)

    def read(self, kind: str | None) -> Reading:
        if not self.texts:
            return self._reading(numbers=np.full(len(self.codes), np.nan))
        if kind is None and self._all_digits() and any(len(text) > 1 and text[0] == "0" for text in self.texts):
            self.warnings.append(
                f"Column '{self.name}' has leading zeros, so it is read as codes. "
                "If it is a number, state kind: number."
            )
            return self.levels()
        if len(self.texts) >= 5 and all(_COMPACT_DATE.fullmatch(text) for text in self.texts):
            return self._problem(f"'{self.texts[0]}' is a date. {DATE_ADVICE}", 0)
        return self._written_numbers(kind)

    def _all_digits(self) -> bool:
        return all(text.isdigit() for text in self.texts)

    def _written_numbers(self, kind) -> Reading:
        """Decimal commas, thousands separators, detection limits, and words among numbers."""
        texts, warnings = self.texts, []
        limits = {i for i, text in enumerate(texts) if _CENSORED.match(text)}
        bare = [_CENSORED.sub("", text, count=1) if i in limits else text for i, text in enumerate(texts)]
        signs = (self.rules.decimal,) if self.rules.decimal else (".", ",")
        parsed = {sign: [parse_number(text, sign) if _DIGIT.search(text) else None for text in bare] for sign in signs}
        sign = max(signs, key=lambda sign: sum(value is not None for value in parsed[sign]))
        values = parsed[sign]
        numeric = [i for i, value in enumerate(values) if value is not None]
        plain = [i for i in numeric if i not in limits]
        words = [i for i, value in enumerate(values) if value is None]
        absent = {i for i in words if texts[i].casefold() in MISSING_AMONG_NUMBERS}
        words = [i for i in words if i not in absent]
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(texts))
        mostly_numbers = counts[numeric].sum() * 2 >= counts[numeric + words].sum()
        remarks = len(plain) >= 10 and len(words) <= 3  # numbers, however few, beside a remark such as 'pending'
        if not plain or (kind is None and not mostly_numbers and not remarks):
            return self._words(kind, limits)
        if words:
            return self._mixed(kind, signs, parsed, words, values)
        if limits and self.rules.censored == "refuse":
            return self._problem(
                f"'{texts[min(limits)]}' is a detection limit, not a number ({counts[list(limits)].sum()} such cells). "
                "Write the number to use, leave it empty, or read with censored='limit' to take the limit itself.",
                min(limits),
            )
        if limits:
            warnings.append(
                f"Column '{self.name}': {counts[list(limits)].sum()} cells such as '{texts[min(limits)]}' "
                "were read as the limit itself."
            )
        if absent:
            warnings.append(
                f"Column '{self.name}': {counts[list(absent)].sum()} cells such as '{texts[min(absent)]}' "
                "were read as not measured."
            )
        self.warnings += warnings
        numbers = np.array([np.nan if value is None else value for value in values])
        return self._numbers(numbers, self._evidence(bare, parsed, signs, sign))

    def _evidence(self, bare, parsed, signs, sign) -> str | None:
        if len(signs) == 1 or not any(("," in text or "." in text) for text in bare):
            return None
        other = parsed["," if sign == "." else "."]
        same = all((mine is None) == (theirs is None) for mine, theirs in zip(parsed[sign], other, strict=True))
        return "either" if same else sign

    def _mixed(self, kind, signs, parsed, words, values) -> Reading:
        """Mostly numbers, and some cells that are not."""
        texts = self.texts
        if len(signs) == 2 and all(parsed["."][i] is not None or parsed[","][i] is not None for i in words):
            return self._problem(
                f"'{texts[words[0]]}' and other cells use different decimal signs. Use one in the whole column.",
                words[0],
            )
        special = self._special(words)
        if special is not None:
            return special
        if kind is None and len(words) >= 3 and all(_CODE.fullmatch(texts[i]) for i in words):
            self.warnings.append(
                f"Column '{self.name}' mixes numbers and texts such as '{texts[words[0]]}', "
                "so it is read as categories."
            )
            return self.levels()
        return self._problem(
            f"'{texts[words[0]]}' is not a number, unlike most cells of the column. "
            "Correct it, leave it empty, or state kind: category.",
            words[0],
        )

    def _words(self, kind, limits) -> Reading:
        special = self._special(range(len(self.texts)))
        if special is not None:
            return special
        if kind == "number":
            return self._problem(f"'{self.texts[0]}' is not a number, unlike what the schema states.", 0)
        if limits:
            self.warnings.append(
                f"Column '{self.name}': cells such as '{self.texts[min(limits)]}' are read as categories, "
                "not as limits."
            )
        return self.levels()

    def _special(self, indices) -> Reading | None:
        """Dates, pairs such as 120/80, and numbers with their unit are refused with advice."""
        indices = list(indices)
        for is_such, sentence in (
            (is_date, "is a date or a time. " + DATE_ADVICE),
            (_PAIR.fullmatch, "holds two numbers. Split the column into two."),
            (_UNIT.fullmatch, "is a number with a unit or a mark. Keep the number; the unit belongs in the schema."),
        ):
            such = [i for i in indices if _BEGINS_AS_NUMBER_OR_MONTH.match(self.texts[i]) and is_such(self.texts[i])]
            if such and len(such) * 2 >= len(indices):
                return self._problem(f"'{self.texts[such[0]]}' {sentence}", such[0])
        return None

    def levels(self) -> Reading:
        """Texts as they are; those that differ by case stay apart, with a warning."""
        codes, texts = self.codes, self.texts
        folded: dict[str, str] = {}
        for text in texts:
            twin = folded.setdefault(text.casefold(), text)
            if twin != text:
                self.warnings.append(
                    f"Column '{self.name}' holds '{twin}' and '{text}', which are read as two different levels."
                )
        return self._reading(codes=codes, texts=tuple(texts))

    def _numbers(self, values, decimal) -> Reading:
        return _numbers(self._reading(decimal=decimal), np.append(values, np.nan)[self.codes], self.rows, self.rules)

    def _reading(self, **content) -> Reading:
        return Reading(self.name, warnings=tuple(self.warnings), **content)

    def _problem(self, sentence, index) -> Reading:
        row = self.rows[int(np.argmax(self.codes == index))]
        return self._reading(
            codes=self.codes, texts=tuple(self.texts), problem=f"Column '{self.name}', row {row}: {sentence}"
        )

"""What one text can mean: a number, a date, a detection limit, "not recorded" … Nothing here knows of columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from l2m_core.tables.how_to_state import how_to_state

MISSING = frozenset(
    ("", "na", "n/a", "#n/a", "n.a.", "nan", "<na>", "null", "?", "-", "--", "\u2013", "\u2014", ".", "#null!")
)
# Words that mean "not measured" among numbers, but may well be a level among words.
MISSING_AMONG_NUMBERS = frozenset(
    ("none", "missing", "unknown", "not done", "not measured", "not available", "nil", "n.d.", "nd")
)
# Words that often mean "not measured", of several languages: whether they do, in a column of words, is for a person to say.
PERHAPS_MISSING = MISSING_AMONG_NUMBERS | frozenset(
    (
        *(
            "unk",
            "not known",
            "not recorded",
            "not tested",
            "not performed",
            "not assessed",
            "not applicable",
            "no data",
        ),
        *("no answer", "pending", "refused", "declined", "k.a.", "keine angabe", "keine angaben", "unbekannt", "fehlt"),
        *("nicht gemessen", "nicht bestimmt", "nicht erhoben", "nicht durchgeführt", "nicht beurteilbar", "ausstehend"),
        *("inconnu", "inconnue", "non fait", "non réalisé", "non renseigné", "manquant", "n.r.", "desconocido"),
        *("no realizado", "no disponible", "sin dato", "sin datos", "sconosciuto", "non eseguito", "non disponibile"),
    )
)
# Numbers that often stand for "not measured".
SENTINELS = (-1.0, -9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0, 99999.0)
LARGEST_WHOLE = 2**53  # up to here every whole number is a 64-bit float
LONGEST_NUMBER = 400  # characters; a longer text is none, and no pattern below is tried on it

# Digits with a decimal sign and an exponent, or in groups of three without an exponent.
_NUMBER = {
    ".": re.compile(r"[-+]?(?:\d*(?:\.\d*)?(?:[eE][-+]?\d+)?|[1-9]\d{0,2}(?:(?:,\d{3})+|(?:[ ']\d{3})+)(?:\.\d*)?)"),
    ",": re.compile(r"[-+]?(?:\d*(?:,\d*)?(?:[eE][-+]?\d+)?|[1-9]\d{0,2}(?:(?:\.\d{3})+|(?:[ ']\d{3})+)(?:,\d*)?)"),
}
_MAYBE_NUMBER = re.compile(r"[-+\u2212]?\s*[.,]?\d")
_LIMIT = re.compile(r"[<>\u2264\u2265]=?\s*")
_CODE = re.compile(r"[A-Za-z]{1,3}\d[\w.]*")
_MAYBE_MEASURE = re.compile(r"(?i)[-+($\u20ac\u00a3\u00a5]?\s*\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec")
_MEASURE = re.compile(
    r"[-+]?\d[\d.,]*\s*(?:[%*!#\u2020\u2021]|[a-zA-Z\u00b5\u03bc\u00b0][^\d\s]*)"
    r"|[$\u20ac\u00a3\u00a5]\s*\d[\d.,]*|\d[\d.,]*\s*[$\u20ac\u00a3\u00a5]|\(\d[\d.,]*\)"
)
_WITH_UNIT = re.compile(
    r"([<>\u2264\u2265]?=?\s*[-+\u2212]?\s*\d[\d.,' \u00a0\u202f]*)"
    r"([%a-zA-Z\u00b5\u03bc\u00b0](?:[^\d\s]*|\S*/\S+))"  # mmol/L, %, and with digits such as kg/m2
)
_FLAGS = ("h", "hh", "l", "ll", "n", "a", "ok")  # marks of a laboratory: high, low, normal, abnormal
LONGEST_UNIT = 16  # characters
_PAIR = re.compile(r"\d+(?:[.,]\d+)?\s*/\s*\d+(?:[.,]\d+)?")
# As spreadsheets of India group digits: 1,00,000. A number of thousands has three digits behind every sign.
_LAKHS = re.compile(r"[-+]?[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d*)?")
_POWER = re.compile(r"[-+]?\d[\d.,]*\s*[xX*\u00d7\u00b7]\s*10\s*(?:\^|\*\*)\s*[-+]?\d+|10\s*(?:\^|\*\*)\s*[-+]?\d+")
# 1'23, whose sign stands before no thousand, and 5'11, of feet and inches. 101_042 is a site's patient rather than a number.
_GROUPS = re.compile(r"[-+]?\d+(?:'\d+)+(?:[.,]\d*)?")
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
# What spreadsheets make of 3-20 and 10-14.
_SHORT_DATE = re.compile(
    r"(?i)(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)-\d{1,4}|"
    r"\d{1,2}-(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)"
)
_BAND = re.compile(r"\d{1,3}\s*[-\u2013]\s*\d{1,3}|[<>\u2264\u2265]=?\s*\d{1,3}|\d{1,3}\s*\+")
_DATES = (
    re.compile(r"(?:1[6-9]|2[0-2])\d\d([-/.])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?:[T ].*)?"),
    re.compile(r"(?:0?[1-9]|[12]\d|3[01])([-/.])(?:0?[1-9]|[12]\d|3[01])\1(?:\d\d|(?:1[6-9]|2[0-2])\d\d)(?:[T ,].*)?"),
    re.compile(rf"(?i)\d{{1,2}}[- .]*{_MONTH}[-., ]+\d{{2,4}}(?:[T ,].*)?"),
    re.compile(rf"(?i){_MONTH}[-. ]+\d{{1,2}},?[-. ]+\d{{2,4}}(?:[T ,].*)?"),
    re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])"),
    _SHORT_DATE,
    re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:\s*[aApP][mM])?"),
)
_TITRE = re.compile(r"[<>\u2264\u2265]?=?\s*1\s*:\s*\d{1,7}")
_TRAILING_MINUS = re.compile(r"\d[\d.,]*-")
_FORMULA_TEXT = re.compile(r'="([^"]*)"')
_QUOTED = re.compile(r"'(.+)|\"(.+)\"")
_COMPACT_DATE = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")

EPOCHS = "looks like a point in time, counted in seconds or milliseconds since 1970"
DATE_ADVICE = "Turn it into a number, such as days since admission or age in years, or set its role to ignored."
# Texts that hold a number which we must not take out by ourselves, and what to do with them.
ADVICE = {
    "date": "is a date or a time. " + DATE_ADVICE,
    "pair": "holds two numbers. Split the column into two.",
    "unit": "is a number with a unit. Keep the number, as the unit belongs in the schema, or have the numbers taken "
    f"({how_to_state('units', 'drop')}).",
    "mark": "is a number with a unit or a mark. Keep the number; the unit belongs in the schema.",
    "lakhs": "has its digits in groups of two. Write the number without signs between them, or state kind: category.",
    "groups": "has signs between its digits that do not part thousands. Write the number without them, or state kind: category.",
    "power": "is a number with a power of ten. Write it as 1.5e3 or 1500, or state kind: category.",
    "trailing minus": "has its minus behind the number. Write it in front.",
}


def parse_number(text: str, decimal: str = ".") -> float | None:
    """The number that a text writes, with thousands separated or not; None if it is none (inf and nan are none)."""
    text = text.strip()
    if not text.isascii():
        text = in_ascii(text).translate(_CERTAIN_SIGNS[decimal])
    if len(text) > LONGEST_NUMBER or not _NUMBER[decimal].fullmatch(text) or not _MAYBE_NUMBER.match(text):
        return None
    text = text.replace(" ", "").replace("'", "")
    text = text.replace(",", "") if decimal == "." else text.replace(".", "").replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


def are_numbers(texts: Iterable[str]) -> bool:
    return all(parse_number(text) is not None for text in texts)


def parse_both(text: str) -> tuple[float | None, float | None]:
    """The number under a decimal point, and under a decimal comma."""
    if not _MAYBE_NUMBER.match(text) and text.isascii():
        return None, None
    point = parse_number(text, ".")
    return point, parse_number(text, ",") if "," in text or "." in text or not text.isascii() else point


def in_ascii(text: str) -> str:
    """Digits of any script, the true minus, narrow blanks and typographic apostrophes as their plain forms, one
    character for one. A superscript, a circled digit or a fraction stays, so that 10³ never becomes 103."""
    return "".join(map(_plain, text[: LONGEST_NUMBER + 1]))


_PLAIN = {"\u2212": "-", "\u2019": "'"}
# Signs that mean one thing whatever the decimal sign of a file: the raised point, and those of Arabic.
CERTAIN_SIGNS = "\u00b7\u066b\u066c"
_CERTAIN_SIGNS = {
    ".": str.maketrans({"\u00b7": ".", "\u066b": ".", "\u066c": ","}),
    ",": str.maketrans({"\u00b7": ",", "\u066b": ",", "\u066c": "."}),
}
_ONE_FOR_ONE = ("<wide>", "<narrow>", "<small>", "<noBreak>")  # forms of a character that differ by their width alone


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    form, _, code = unicodedata.decomposition(character).partition(" ")
    if form in _ONE_FOR_ONE or (form == "<compat>" and code == "0020"):
        return chr(int(code, 16))
    return _PLAIN.get(character, character)


def unwrapped(text: str) -> str:
    """What a spreadsheet wraps to keep it a text: ="5.3" is 5.3, and so is '5.3 or "5.3" where that is a number.

    Characters that cannot be seen are no part of a number either.
    """
    formula = _FORMULA_TEXT.fullmatch(text) if text[:1] == "=" else None
    if len(text) > LONGEST_NUMBER:
        return text
    if formula is not None:
        return formula[1].strip()
    quoted = _QUOTED.fullmatch(text)
    inner = (quoted[1] or quoted[2]).strip() if quoted is not None else text
    if not inner.isascii():
        inner = "".join(character for character in inner if unicodedata.category(character) != "Cf")
    return inner if inner != text and parse_both(without_limit_sign(inner)) != (None, None) else text


def is_unusual(text: str) -> bool:
    """Whether a number has a sign that few files use."""
    return not text.isascii() and any(sign in text for sign in CERTAIN_SIGNS)


def is_disguised(text: str) -> bool:
    """5.3¹, 10³, 5①, 5½: no number, but one to a program that takes a superscript or a circled digit for a plain one."""
    text = without_limit_sign(text)
    if text.isascii() or len(text) > LONGEST_NUMBER:
        return False
    compatible = unicodedata.normalize("NFKC", text).replace("\u2044", "")
    if _MAYBE_NUMBER.match(compatible) is None or parse_both(compatible) == (None, None):
        return False
    return parse_both(text) == (None, None)


DISGUISED = (
    "holds a superscript, subscript, circled digit or fraction, so it is not clear which number it is. "
    "Write the number in plain digits"
)


def has_thousands(text: str, decimal: str) -> bool:
    """Whether a number separates its thousands: 1,234.5 with a decimal point, 1.234,5 with a decimal comma."""
    plain = without_limit_sign(text if text.isascii() else in_ascii(text)).strip()
    return any(sign in plain for sign in (" ", "'", "," if decimal == "." else "."))


def are_epochs(numbers: np.ndarray) -> bool:
    """Whole numbers that are all seconds, or all milliseconds, since 1970, from 1990 to 2050. NaN is left out."""
    present = numbers[~np.isnan(numbers)]
    if len(present) < 5 or np.ptp(present) == 0 or np.any(present != np.round(present)):
        return False
    low, high = present.min(), present.max()
    return any(631_152_000 * unit <= low and high <= 2_524_608_000 * unit for unit in (1, 1000))


def plain_number(value: Any) -> float:
    """A number in double precision; one of fewer bits as it is written: 0.1 of np.float32(0.1)."""
    return float(str(value)) if isinstance(value, np.float16 | np.float32) else float(value)


def number_text(value: float) -> str:
    """The shortest text that reads back as this number: 1, not 1.0; '' for NaN."""
    if value != value:
        return ""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(float(value))


def entered_text(value: float) -> str:
    """A number that somebody entered, or a sum of such, digit for digit: 1234567.5, and 0.3 for 0.1 + 0.2."""
    return number_text(float(f"{value:.12g}"))


def such_cells(count: int, more: str = "") -> str:
    """'1 such cell', '1,200 more such cells'."""
    return f"{count:,} {more}such cell{'' if count == 1 else 's'}"


def whole_text(value: Any) -> str:
    """A whole number digit for digit, also beyond what a float can tell apart."""
    number = int(value)
    return str(number) if abs(number) < 10**LONGEST_NUMBER else "inf" if number > 0 else "-inf"


def is_missing(text: str, further: frozenset[str] = frozenset()) -> bool:
    stripped = text.strip()
    return stripped.casefold() in MISSING or stripped in further


def is_limit(text: str) -> bool:
    """Below or above what can be measured: <5, ≥ 100."""
    return _LIMIT.match(text) is not None


def without_limit_sign(text: str) -> str:
    return _LIMIT.sub("", text, count=1)


def is_code(text: str) -> bool:
    """Such as V57 or E11.9, which stand among numbers in some coding systems."""
    return _CODE.fullmatch(text) is not None


def is_band(text: str) -> bool:
    """A range such as 5-9, <5 or 80+."""
    return _BAND.fullmatch(text) is not None


def is_short_date(text: str) -> bool:
    """Mar-20 or 14-Oct, which a spreadsheet may have made of 3-20 or 10-14."""
    return _SHORT_DATE.fullmatch(text) is not None


def is_titre(text: str) -> bool:
    """1:80, as a serum was diluted; of a clock that shows one it would be 01:20 or 1:20 among other hours."""
    return _TITRE.fullmatch(text) is not None


def is_compact_date(text: str) -> bool:
    return _COMPACT_DATE.fullmatch(text) is not None


def in_need_of_advice(text: str) -> str | None:
    """The key of ADVICE that fits, if any."""
    if len(text) > LONGEST_NUMBER:
        return None
    text = text if text.isascii() else in_ascii(text)
    if not _MAYBE_MEASURE.match(text):
        return None
    if _TRAILING_MINUS.fullmatch(text):
        return "trailing minus"
    if any(pattern.fullmatch(text) for pattern in _DATES):
        return "date"
    if _PAIR.fullmatch(text):
        return "pair"
    if _LAKHS.fullmatch(text):
        return "lakhs"
    if _GROUPS.fullmatch(text):
        return "groups"
    if _POWER.fullmatch(text):
        return "power"
    return "unit" if number_and_unit(text) is not None else "mark" if _MEASURE.fullmatch(text) else None


def number_and_unit(text: str) -> tuple[str, str] | None:
    """'<5.2 mmol/L' as '<5.2' and 'mmol/L'; None where no unit stands behind a number."""
    text = text if text.isascii() else in_ascii(text)
    found = None if len(text) > LONGEST_NUMBER or parse_both(text) != (None, None) else _WITH_UNIT.fullmatch(text)
    if found is None or len(found[2]) > LONGEST_UNIT or found[2].casefold() in _FLAGS:
        return None
    number = found[1].strip()
    return None if parse_both(without_limit_sign(number)) == (None, None) else (number, found[2])


def unit_key(unit: str) -> str:
    """Equal for the same unit, however its letters are written."""
    return unit.replace("\u03bc", "\u00b5").replace(" ", "").casefold()


def may_mean_missing(text: str) -> bool:
    return " ".join(text.split()).casefold() in PERHAPS_MISSING

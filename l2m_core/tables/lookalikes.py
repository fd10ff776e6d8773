"""Texts that a person would take for the same: they look alike, or a slip of the key tells them apart."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

# Cyrillic and Greek letters that look like Latin ones.
_LOOK_ALIKE = str.maketrans(
    "АВЕЗКМНОРСТУХаеорсухіјѕ\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
    "ABE3KMHOPCTYXaeopcyxijsABEZHIKMNOPTYXo",
)
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"))
_NUMBERED = re.compile(r".*[\divxIVX]")  # stage 1, grade II: names that differ by their end on purpose


def twin_key(text: str) -> str:
    """Equal for texts that look the same: in case, blanks, invisible characters, composed or not, of another script."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_DASHES))
        text = "".join(character for character in text if unicodedata.category(character) != "Cf")
        text = text.translate(_LOOK_ALIKE)
    return " ".join(text.split()).casefold()


def twins(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of different texts that look the same, the earlier one first."""
    first: dict[str, str] = {}
    for text in texts:
        twin = first.setdefault(twin_key(text), text)
        if twin != text:
            yield twin, text


def in_quotes(text: str) -> str:
    """With what cannot be seen written out."""
    return f"'{text}'" if text.isprintable() else ascii(text)


def both_shown(first: str, second: str) -> tuple[str, str]:
    """In quotes; with what cannot be seen written out, where the two differ by more than their case."""
    if first.casefold() == second.casefold():
        return f"'{first}'", f"'{second}'"
    return ascii(first), ascii(second)


def is_slip(a: str, b: str) -> bool:
    """Whether one letter too many, too few, swapped or mistaken tells two words apart: ded and dead.

    Numbered names (stage 1, grade II, LumA) and opposites (typical, atypical) differ by one letter on purpose.
    """
    short, long = sorted((twin_key(a), twin_key(b)), key=len)
    if not (short + long).replace(" ", "").isalpha() or len(short) < 3 or len(long) - len(short) > 1:
        return False
    at = next((i for i, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
    if len(long) > len(short):
        numbered = at == len(short) and _NUMBERED.fullmatch(long) is not None
        return short[at:] == long[at + 1 :] and not numbered and not (at == 0 and long[0] == "a")
    if short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]:
        return True
    return len(short) >= 5 and at < len(short) - 1 and short[at + 1 :] == long[at + 1 :]

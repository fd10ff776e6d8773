"""The order of levels and classes: which of two means "no", and which spellings are one level."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from l2m_core.schema import MOST_LEVELS
from l2m_core.tables.cell_parsing import parse_number
from l2m_core.tables.column_reading import Reading
from l2m_core.tables.synonyms import FEMALE, MALE, NO, YES, spellings_of_two

# Of two levels or classes, the one that means "no" comes first; alphabetical order already puts no < yes, false < true.
NEGATIVE = NO | frozenset(
    (
        "\u2212",
        "\u2013",
        "(-)",
        "none",
        "normal",
        "low",
        "never",
        "off",
        "alive",
        "survived",
        "survivor",
        "recovered",
        "control",
        "healthy",
        "censored",
        "benign",
        "stable",
        "nil",
        # As tables in German, Dutch, French, Spanish, Italian, Portuguese and the Nordic languages say no.
        "nee",
        "não",
        "nao",
        "nej",
        "nei",
        "falsch",
        "negativ",
        "negativo",
        "negativa",
        "negatif",
        "négatif",
        "negatief",
        "lebt",
        "überlebt",
        "vivant",
        "vivo",
        "gesund",
        "sain",
        "sano",
        "gutartig",
        "benigne",
        "benigno",
    )
)
_DIGITS = re.compile(r"([0-9]{1,18})")
BOOLEANS = frozenset(filter(str.isalpha, NO | YES | FEMALE | MALE)) | {"f", "t", "normal", "abnormal"}


def order_levels(texts: Sequence[str], order: Sequence[str] = ()) -> tuple[tuple[str, ...], bool]:
    """Texts in code order, and whether we are certain which of two is the positive one. order: that of the table, of these
    texts and perhaps others; of two texts only if neither plainly means "no"."""
    levels, certain = _order_by_words(texts)
    place = {text: number for number, text in enumerate(order)}
    if certain and len(levels) == 2 or not place.keys() >= set(levels):
        return levels, certain
    return tuple(sorted(levels, key=place.__getitem__)), len(levels) == 2


def _order_by_words(texts) -> tuple[tuple[str, ...], bool]:
    numbers = [parse_number(text) for text in texts]
    if all(number is not None for number in numbers):
        return tuple(text for _, text in sorted(zip(numbers, texts, strict=True))), True
    ordered = sorted(texts, key=_by_words_and_numbers)
    if len(ordered) != 2:
        return tuple(ordered), False
    negative = [_means_no(text, ordered[1 - i]) for i, text in enumerate(ordered)]
    if negative[1] and not negative[0]:
        ordered.reverse()
    return tuple(ordered), negative[0] != negative[1]


def _by_words_and_numbers(text: str) -> tuple:
    """Alphabetical, but numbers by their size: 1:80 before 1:160, 6-10 before 11-20, <40 before 40-59, 80+ after 80."""
    pieces = _DIGITS.split(text.casefold())  # words and digits in turn, a word (perhaps empty) first
    before = pieces[0].strip()
    sign = {"<": -1, "\u2264": -1, "<=": -1, ">": 1, "\u2265": 1, ">=": 1}.get(before)
    if sign is not None:
        pieces[0] = ""
    elif len(pieces) == 3 and not before and pieces[2].strip() == "+":
        sign = 1
    in_turn = [int(piece) if number % 2 else piece for number, piece in enumerate(pieces)]
    return (in_turn[:2], sign or 0, in_turn[2:], text)


def _means_no(text, other) -> bool:
    text, other = text.casefold(), other.casefold()
    stem = re.sub(r"^(?:(?:non|not?)[ _-]*|(?:without|nicht|kein|keine|ohne|sans|sin|niet|geen)[ _-]+)", "", text)
    return text in NEGATIVE or (stem != text and stem == other)


def merge_case(reading: Reading, warnings, stated: Sequence[str] = ()) -> Reading:
    """'Yes' and 'yes' are one level; other texts that differ by case stay apart, and so do stated levels."""
    texts = reading.texts
    if len({text.casefold() for text in texts} - BOOLEANS) or len(texts) < 2:
        return reading
    counts = reading.counts
    spelling: dict[str, int] = {}
    for i in sorted(range(len(counts)), key=lambda i: (texts[i] not in stated, -counts[i], texts[i])):
        spelling.setdefault(texts[i].casefold(), i)
    becomes = [i if text in stated else spelling[text.casefold()] for i, text in enumerate(texts)]
    kept = sorted({*becomes})
    if len(kept) == len(texts):
        return reading
    warnings[:] = [w for w in warnings if "two different levels" not in w]
    warnings.append(f"Column '{reading.name}': spellings that differ by case were joined into one level each.")
    lookup = np.array([*map(kept.index, becomes), -1])
    return replace(reading, codes=lookup[reading.codes], texts=tuple(texts[i] for i in kept))


def join_spellings(reading: Reading, settings: Mapping[str, Any], warnings) -> Reading:
    """Y and Yes, TRUE and 1 are one level where a column holds nothing else, unless it is stated to be a category."""
    if reading.numbers is not None or settings.get("kind", "binary") != "binary" or len(reading.texts) > MOST_LEVELS:
        return reading
    counts = reading.counts
    cells = dict(zip(reading.texts, counts.tolist(), strict=True))
    joined = spellings_of_two(cells, settings.get("levels") or ())
    if not joined or set(map(str.casefold, cells)) == set(map(str.casefold, joined.values())):
        return reading
    kept = list(dict.fromkeys(joined[text] for text in reading.texts))
    shown = ", ".join(f"'{text}' as '{joined[text]}'" for text in reading.texts if joined[text] != text)
    if shown:
        warnings[:] = [w for w in warnings if "two different levels" not in w]
        warnings.append(f"Column '{reading.name}': spellings of one level were joined: {shown}.")
    lookup = np.array([kept.index(joined[text]) for text in reading.texts] + [-1])
    return replace(reading, codes=lookup[reading.codes], texts=tuple(kept))

"""Results written as signs: +, ++, (+), ±, 2+, and the minus that is one of them."""

from __future__ import annotations

import re
from collections.abc import Collection

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d\u207b\u208b\u2796", "-"),
        **dict.fromkeys("\ufe62\uff0b\u207a\u208a\u2795", "+"),
        "\u2213": "\u00b1",
        "\uff08": "(",
        "\uff09": ")",
        "\uff0f": "/",
        " ": None,
    }
)
_PLUS = re.compile(r"[-+\u00b1/()\[\]]*[+\u00b1][-+\u00b1/()\[\]]*|\d\+{1,4}")
_POSITIVE = re.compile(r"(?i)pos(?:\.|itiv[eoa]?|itif|itief)?")
_MINUS = re.compile(r"[(\[]?-{1,3}[)\]]?")
_GRADE = re.compile(r"\+[1-5]|0")
_LONGEST = 12  # characters of a sign


def is_plus(text: str) -> bool:
    """+, ++, (+), ±, +/-, 2+, or a word such as pos. A number such as +3 is none."""
    if len(text) > _LONGEST:
        return False
    return _PLUS.fullmatch(text.translate(_PLAIN)) is not None or _POSITIVE.fullmatch(text) is not None


def is_minus(text: str) -> bool:
    """A minus or a dash of any length, in brackets or not."""
    return len(text) <= _LONGEST and _MINUS.fullmatch(text.translate(_PLAIN)) is not None


def minus_is_a_result(texts: Collection[str]) -> bool:
    """Beside a plus of any form, a minus is a result and never means "not recorded"; so it is beside the grades +1 to +5,
    unless other numbers stand there too."""
    numbers = [text for text in texts if any(map(str.isdigit, text))]
    graded = any(text[0] == "+" for text in numbers) and all(map(_GRADE.fullmatch, numbers))
    return graded or any(map(is_plus, texts))

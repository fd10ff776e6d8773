"""Damage to a file, of its bytes or of what is written in it. The same generator gives the same damage."""

from __future__ import annotations

import copy
import json
import math
from random import Random
from typing import Any

import yaml

PIECES = (
    b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\n", b"\n\n", b'"', b"'", b",", b";", b"\t", b"|",
    b"=", b"-", b"+", b"NaN", b"1e999", b"-1e-999", b"1_000", b"0x1f", b"9" * 400, b"null", b"~", b"true", b"{", b"}",
    b"[", b"]", b"[" * 2000, b"&a", b"*a", b"<<: *a", b"!!python/name:os.system", b"---", b"...", b"#", b": ", b"- ",
    b"? ", b"\xed\xa0\x80", b"\xe2\x80\xae", b"=\"5.3\"", b"5,3", b"1.234", b"<5", b"\xc2\xb9", b"\xe2\x88\x92", b"+",
    b"NA", b"999", b"Mar-20", b"1600000000", b"12/13/14", b"Y", b"Yes", b"TRUE", b"\xd9\xab", b"\xc2\xb7",
    b"\xe2\x80\x8b", b"sep=;\n", b"\x1f\x8b", b"PAR1", b"PK\x03\x04",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, "", " ", "\0", "x", "1", "NaN", "-", "\u202e", "\ud800", "a" * 3000, [], {}, [[]], {"": None},
    {"a": {"a": 1}},
    0, -1, 1, 2, 3, 2**31, 2**63, 10**30, -(10**30), 0.0, -0.0, 0.5, 1e-320, 1e308, math.inf, -math.inf, math.nan,
)  # fmt: skip


def damaged(data: bytes, random: Random) -> bytes:
    """With a few pieces cut out, doubled, moved, or put in."""
    content = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        start = random.randrange(len(content) + 1)
        end = min(len(content), start + random.choice((0, 1, 1, 2, 5, 40, 400)))
        kind = random.randrange(4)
        if kind == 0:
            content[start:end] = random.choice(PIECES)
        elif kind == 1:
            content[start:end] = content[start:end] * random.choice((2, 3, 50))
        elif kind == 2:
            piece = content[start:end]
            del content[start:end]
            place = random.randrange(len(content) + 1)
            content[place:place] = piece
        elif start < len(content):
            content[start] ^= 1 << random.randrange(8)
    return bytes(content)


def altered(plain: Any, random: Random) -> Any:
    """Nested values with a few of them replaced, left out, doubled, or put elsewhere."""
    plain = copy.deepcopy(plain)
    for _ in range(random.choice((1, 1, 2, 4))):
        holder, key = random.choice([*_places(plain)] or [(None, None)])
        if holder is None:
            return random.choice(ODD)
        kind = random.randrange(5)
        if kind < 2:
            holder[key] = copy.deepcopy(random.choice(ODD))
        elif kind == 2:
            del holder[key]
        elif kind == 3 and isinstance(holder, list):
            holder[key:key] = [copy.deepcopy(holder[key])] * random.choice((1, 3, 200))
        elif kind == 3:
            holder[random.choice((f"{key}x", "", str(key).upper(), 7))] = copy.deepcopy(holder[key])
        else:
            other, place = random.choice([*_places(plain)])
            other[place] = copy.deepcopy(holder[key])
    return plain


def _places(plain: Any):
    """Every (container, key) in nested lists and dicts."""
    items = (
        list(plain.items()) if isinstance(plain, dict) else list(enumerate(plain)) if isinstance(plain, list) else []
    )
    for key, value in items:
        yield plain, key
        yield from _places(value)


def as_json(plain: Any) -> bytes:
    return json.dumps(plain, skipkeys=True).encode()


def as_yaml(plain: Any) -> bytes:
    return yaml.safe_dump(plain, allow_unicode=False, sort_keys=False).encode("utf-8", "surrogatepass")

"""How much memory a Parquet column takes once unpacked, from the headers of its pages, before any page is unpacked.

pyarrow tells only what the file's description declares (`total_uncompressed_size`), and a file may declare what it likes.
Measured with pyarrow 26: a file of 129 kB that declares 24 kB for a column of 25 million zeros is read without a complaint,
and reading it allocates 340 MB. A reader goes by the header of each page, which pyarrow does not show, so the headers are
read here. The description is read here as well: pyarrow's own view of a damaged one can end the process.

Both are a few numbers in Thrift's compact coding. Whatever in them is not plain is refused, so that no two readers differ
on it: ValueError, LookupError or TypeError where something is damaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from l2m_core.errors import CohortError

MOST_PAGES = 100_000
LONGEST_HEADER = 1_000_000  # bytes; as Python objects they take a hundred times that
DATA, DICTIONARY, DATA_V2 = 0, 2, 3  # kinds of page, in field 1 of a header
ABOUT = {DATA: 5, DICTIONARY: 7, DATA_V2: 8}  # the field that tells more of a page of that kind
ENCODING = {DATA: 2, DICTIONARY: 2, DATA_V2: 4}  # and the field therein with its encoding; the first counts its values
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _STRUCT = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12)
_HIGHEST_FIELD, _DEEPEST = 30, 10
Bytes = bytes | memoryview
Fields = dict[int, tuple[int, Any]]  # number of a field → its kind, its value


@dataclass(frozen=True)
class Chunk:
    """A column in one row group: how many values, and where its pages lie in the file."""

    values: int
    start: int
    end: int


@dataclass(frozen=True)
class Group:
    rows: int
    chunks: list[Chunk]  # of each column


@dataclass
class Pages:
    """Of one column: `unpacked` bytes, values in dictionaries (`distinct`), and how its values are coded."""

    count: int = 0
    unpacked: int = 0
    distinct: int = 0
    encodings: frozenset[int] = frozenset()


def description_size(data: bytes) -> int:
    return int.from_bytes(data[-8:-4], "little")


def row_groups(data: bytes) -> list[Group]:
    footer, _ = _struct(data, len(data) - 8 - description_size(data))
    groups = [fields for _, fields in _get(footer, 4, _LIST)]
    return [
        Group(_size(_get(group, 3, _I64)), [_chunk(_get(chunk, 3, _STRUCT)) for _, chunk in _get(group, 1, _LIST)])
        for group in groups
    ]


def _chunk(about: Fields) -> Chunk:
    start, length = _size(_get(about, 9, _I64)), _size(_get(about, 7, _I64))
    if 11 in about and 0 < _size(_get(about, 11, _I64)) < start:  # a dictionary stands before the data
        start = _get(about, 11, _I64)
    return Chunk(_size(_get(about, 5, _I64)), start, start + length)


def measure(data: bytes, chunks: Iterable[Chunk], before: int = 0) -> Pages:
    """before: pages of other columns, which count for how many are read."""
    pages = Pages()
    for chunk in chunks:
        at, seen = chunk.start, 0
        while seen < chunk.values:  # a reader, too, stops at the last value
            header, length = _struct(memoryview(data)[at : at + LONGEST_HEADER], 0)
            kind, unpacked, packed = (_size(_get(header, number, _I32)) for number in (1, 2, 3))
            about = _get(header, ABOUT[kind], _STRUCT)
            values = _size(_get(about, 1, _I32))
            at += length + packed
            if at > min(chunk.end, len(data)):
                raise ValueError("a page goes beyond its column")
            pages.count += 1
            pages.unpacked += max(unpacked, packed)
            if before + pages.count > MOST_PAGES:
                raise CohortError("The Parquet file is in very many small pieces. Write it again, in one row group.")
            pages.encodings |= {_get(about, ENCODING[kind], _I32)}
            if kind == DICTIONARY:
                pages.distinct += values
            else:
                seen += values
    return pages


def _size(value: int) -> int:
    if not 0 <= value < 2**31:
        raise ValueError("a size is out of range")
    return value


# Thrift's compact coding


def _get(fields: Fields, number: int, kind: int) -> Any:
    found, value = fields[number]
    if found != kind:  # another reader would pass it over
        raise ValueError("a field is of another kind")
    return value


def _struct(data: Bytes, at: int, depth: int = 0) -> tuple[Fields, int]:
    """The fields, and where the bytes behind them begin. Each must come once and in order, as every writer has them."""
    found: Fields = {}
    number = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        number += step
        if not step or number > _HIGHEST_FIELD:
            raise ValueError("a field is unknown")
        value, at = (kind == _TRUE, at + 1) if kind in (_TRUE, _FALSE) else _value(data, at + 1, kind, depth)
        found[number] = kind, value
    return found, at + 1


def _value(data: Bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise ValueError("fields lie too deep in each other")
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if kind in (_I16, _I32, _I64):
        number, at = _varint(data, at)
        return number >> 1 ^ -(number & 1), at
    if kind == _BINARY:
        length, at = _varint(data, at)
        return None, at + length
    if kind == _LIST:
        return _list(data, at, depth + 1)
    if kind in (_TRUE, _FALSE, _BYTE, _DOUBLE):
        return None, at + (8 if kind == _DOUBLE else 1)
    raise ValueError("a field is unknown")


def _list(data: Bytes, at: int, depth: int) -> tuple[list[tuple[int, Any]], int]:
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    found = []
    for _ in range(size):  # each takes a byte at least, so the data end before a size that lies
        if at >= len(data):
            raise ValueError("a list has no end")
        value, at = _value(data, at, kind, depth)
        found.append((kind, value))
    return found, at


def _varint(data: Bytes, at: int) -> tuple[int, int]:
    """Seven bits of each byte, the lowest first."""
    found = 0
    for step in range(10):
        found |= (data[at + step] & 127) << 7 * step
        if data[at + step] < 128:
            return found, at + step + 1
    raise ValueError("a number has no end")

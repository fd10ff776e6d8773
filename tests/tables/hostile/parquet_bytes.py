"""Parquet written byte by byte, so that its description can say other than what its pages hold; no writer would do that."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

INT32, INT64, BYTE_ARRAY, FIXED = 1, 2, 6, 7  # physical types
PLAIN, RLE, DELTA_LENGTH, DELTA_BYTE_ARRAY, RLE_DICTIONARY = 0, 3, 6, 7, 8  # encodings
UNCOMPRESSED, GZIP = 0, 2
UTF8, DECIMAL = 0, 5  # converted types
DATA_PAGE, DICTIONARY_PAGE = 0, 2


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def compact(value: Any) -> tuple[int, bytes]:
    """Thrift's compact type and bytes: int is i32, dict a struct by field number, list a list, bytes a binary."""
    if isinstance(value, dict):
        content, last = b"", 0
        for number, inner in sorted(value.items()):
            kind, coded = compact(inner)
            content += bytes([(number - last) << 4 | kind]) + coded
            last = number
        return 12, content + b"\0"
    if isinstance(value, list):
        items = [compact(item) for item in value]
        size = (
            bytes([len(items) << 4 | items[0][0]])
            if len(items) < 15
            else bytes([0xF0 | items[0][0]]) + varint(len(items))
        )
        return 9, size + b"".join(coded for _, coded in items)
    if isinstance(value, bytes):
        return 8, varint(len(value)) + value
    if isinstance(value, Long):
        return 6, varint(value.number << 1)
    return 5, varint(value << 1 if value >= 0 else (-value << 1) - 1)


@dataclass(frozen=True)
class Long:
    """An i64, where Thrift tells it from an i32."""

    number: int


@dataclass(frozen=True)
class Page:
    """count: values that its header claims; unpacked: size that its header claims, by default the true one."""

    content: bytes  # as it lies in the file, compressed or not
    unpacked: int
    count: int
    encoding: int = PLAIN
    kind: int = DATA_PAGE

    def coded(self) -> bytes:
        about = {1: self.count, 2: self.encoding}
        about |= {3: RLE, 4: RLE} if self.kind == DATA_PAGE else {}
        where = 5 if self.kind == DATA_PAGE else 7
        return compact({1: self.kind, 2: self.unpacked, 3: len(self.content), where: about})[1] + self.content


@dataclass(frozen=True)
class Leaf:
    """A required column, so that its pages need no levels. values: what its chunk claims; None: the rows."""

    name: str
    pages: Sequence[Page]
    physical: int = BYTE_ARRAY
    converted: int | None = UTF8
    codec: int = UNCOMPRESSED
    values: int | None = None
    length: int | None = None  # of FIXED
    more: dict[int, Any] = field(default_factory=dict)  # fields of the schema's element


def parquet_bytes(rows: int, leaves: Sequence[Leaf], *, depth: int = 0, groups: int = 1) -> bytes:
    """One row group, told of so many times; `depth` groups, one in the other, stand around a last column."""
    body, chunks = b"PAR1", []
    elements: list[dict[int, Any]] = [{4: b"schema", 5: len(leaves) + bool(depth)}]
    for leaf in leaves:
        at = len(body)
        coded = [page.coded() for page in leaf.pages]
        has_dictionary = leaf.pages[0].kind == DICTIONARY_PAGE
        data_at = at + len(coded[0]) if has_dictionary else at
        body += b"".join(coded)
        about = {
            1: leaf.physical,
            2: [PLAIN, RLE_DICTIONARY],
            3: [leaf.name.encode()],
            4: leaf.codec,
            5: Long(rows if leaf.values is None else leaf.values),
            6: Long(100),
            7: Long(len(body) - at),
            9: Long(data_at),
        }
        chunks.append({2: Long(at), 3: about | ({11: Long(at)} if has_dictionary else {})})
        element = {1: leaf.physical, 3: 0, 4: leaf.name.encode(), **leaf.more}
        element |= {} if leaf.converted is None else {6: leaf.converted}
        elements.append(element | ({} if leaf.length is None else {2: leaf.length}))
    if depth:
        elements += [{3: 0, 4: b"g", 5: 1}] * depth + [{1: INT32, 3: 0, 4: b"x"}]
        chunks.append(chunks[-1])
    group = {1: chunks, 2: Long(100), 3: Long(rows)}
    footer = compact({1: 1, 2: elements, 3: Long(rows * groups), 4: [group] * groups})[1]
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def plain_texts(texts: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def all_of_the_first(count: int) -> bytes:
    """RLE_DICTIONARY: the first value of the dictionary, so many times."""
    return bytes([1]) + varint(count << 1) + b"\0"


def numbers(count: int) -> list[Page]:
    content = b"".join(struct.pack("<q", i % 7) for i in range(count))
    return [Page(content, len(content), count)]

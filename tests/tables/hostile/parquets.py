"""Parquet files of a few kilobytes that hold more than memory should: repeats cost a file nothing."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from l2m_core.tables.table import Limits
from tests.tables.hostile import parquet_bytes as raw
from tests.tables.hostile.corpus import Hostile, both, column_is

LIMITS = Limits(megabytes=2)
ROWS = 400
LONG = 100_000  # characters; as often as there are rows, twenty times the limit
MANY = 100_000_000
DECIMALS: dict[str, Any] = {"converted": raw.DECIMAL, "more": {7: 2, 8: 10}}
AGES = [40 + (7 * i) % 31 for i in range(ROWS)]
DIED = [int(i % 3 == 0) for i in range(ROWS)]


def file(extra: dict[str, pa.Array], **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"age": AGES, **extra, "died": DIED}), buffer, compression="zstd", **options)
    return buffer.getvalue()


def written(rows: int = ROWS, *leaves: raw.Leaf, **options: int) -> bytes:
    usual = [raw.Leaf(name, raw.numbers(rows), raw.INT64, None) for name in ("age", "died")]
    return raw.parquet_bytes(rows, [*leaves, *usual], **options)


def repeated(value: bytes, count: int = ROWS) -> list[raw.Page]:
    """A dictionary of one value, and a page that repeats it."""
    dictionary, places = raw.plain_texts([value]), raw.all_of_the_first(count)
    return [
        raw.Page(dictionary, len(dictionary), 1, kind=raw.DICTIONARY_PAGE),
        raw.Page(places, len(places), count, raw.RLE_DICTIONARY),
    ]


def packed(content: bytes, count: int, **more: int) -> raw.Page:
    packer = zlib.compressobj(wbits=31)
    return raw.Page(packer.compress(content) + packer.flush(), len(content), count, **more)


def lists() -> pa.Array:
    offsets = np.full(ROWS + 1, ROWS * LONG // 8, dtype=np.int32)
    offsets[0] = 0
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.zeros(offsets[1], dtype=np.int64)))


def many_unused() -> list[raw.Page]:
    texts = b"".join(struct.pack("<I", 1) + b"x" for _ in range(900_000))
    places = raw.all_of_the_first(ROWS)
    return [packed(texts, 900_000, kind=raw.DICTIONARY_PAGE), packed(places, ROWS, encoding=raw.RLE_DICTIONARY)]


def refused(name: str, make: Callable[[], bytes], *words: str) -> Iterator[Hostile]:
    yield Hostile(f"parquet: {name}", make(), words, options={"limits": LIMITS})


def column(name: str, make: Callable[[], bytes], *words: str) -> Iterator[Hostile]:
    """A column that cannot be used: refused by its name, and where it is ignored the rest is read."""
    data = make()
    yield Hostile(f"parquet: {name}", data, ("'note'", *words), options={"limits": LIMITS})
    schema = "features:\n- {name: note, role: ignored}\n"
    ages = AGES if b"parquet-cpp" in data else [i % 7 for i in range(ROWS)]
    right = both(lambda cohort: cohort.names == ("age",), column_is("age", ages))
    yield Hostile(f"parquet: {name}, ignored", data, right=right, options={"limits": LIMITS, "schema": schema})


def cases() -> Iterator[Hostile]:
    text = "x" * LONG
    yield from column("a list of millions of numbers", lambda: file({"note": lists()}), "lists")
    for kind in (pa.binary(), pa.large_binary(), pa.binary(LONG)):
        values = pa.array([text.encode()] * ROWS, kind)
        yield from column(f"{kind} of one long value", lambda v=values: file({"note": v}), "bytes")
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        values = pa.array([text] * ROWS, kind)
        yield from column(f"{kind} of one long value", lambda v=values: file({"note": v}), "2 MB")
    structs = lambda: file({"note": pa.array([{"a": text}] * ROWS)})  # noqa: E731
    yield from column("groups", structs, "groups")
    pairs = pa.map_(pa.string(), pa.string())
    yield from column("a map", lambda: file({"note": pa.array([[("a", text)]] * ROWS, pairs)}), "groups")
    shared = [text + str(i) for i in range(ROWS)]
    delta = {"use_dictionary": False, "column_encoding": {"note": "DELTA_BYTE_ARRAY"}}
    yield from column(
        "texts that share their beginnings", lambda: file({"note": pa.array(shared)}, **delta), "encoding"
    )
    promised = (
        raw.varint(MANY - MANY % 128) + b"\1" + raw.varint(MANY) + bytes(3)
    )  # a block, of one part; values; zeros
    lengths = raw.Leaf("note", [raw.Page(promised, len(promised), ROWS, raw.DELTA_LENGTH)])
    yield from column("a promise of millions of lengths", lambda: written(ROWS, lengths), "encoding")
    shares = raw.Leaf(
        "note", [raw.Page(promised, len(promised), ROWS, raw.DELTA_BYTE_ARRAY)], raw.FIXED, length=5, **DECIMALS
    )
    yield from column("decimals that share their beginnings", lambda: written(ROWS, shares), "encoding")
    plain = {"use_dictionary": False}
    yield from column("long texts, plain", lambda: file({"note": pa.array(shared)}, **plain), "2 MB")
    content = raw.plain_texts([text.encode()] * ROWS)
    bomb = lambda: written(ROWS, raw.Leaf("note", [packed(content, ROWS)], codec=raw.GZIP))  # noqa: E731
    yield from column("a page that unfolds, described as small", bomb, "2 MB")
    unused = lambda: written(ROWS, raw.Leaf("note", many_unused(), codec=raw.GZIP))  # noqa: E731
    yield from column("a dictionary of more values than rows could use", unused, "2 MB")
    long_decimal = lambda: written(ROWS, raw.Leaf("note", repeated(b"\0" * LONG), **DECIMALS))  # noqa: E731
    yield from column("decimals of any length", long_decimal, "bytes")
    fixed = raw.Leaf("note", repeated(b"\0" * LONG), raw.FIXED, length=LONG, **DECIMALS)
    yield from column("decimals of a long length", lambda: written(ROWS, fixed), "bytes")
    claims = raw.Leaf("note", repeated(b"abc", 50_000_000), values=50_000_000)
    yield from refused("more values than rows", lambda: written(ROWS, claims), "damaged")
    numbers = raw.Leaf("x", [packed(b"\0" * 20_000_000, ROWS)], raw.INT64, None, raw.GZIP)
    yield from refused("a page of numbers that unfolds", lambda: written(ROWS, numbers), "unpacks to more than 8 MB")
    empty = raw.Leaf("note", [raw.Page(b"", 0, 0)] * 101_000 + repeated(b"abc"))
    yield from refused("very many empty pages", lambda: written(ROWS, empty), "small pieces")
    yield from refused("very many row groups", lambda: written(10, groups=4000), "too many pieces")
    yield from refused("a schema of a thousand levels", lambda: written(depth=1000), "damaged")
    half = pa.array(["y" * (1_200_000 // ROWS)] * ROWS).dictionary_encode()
    several = lambda: file({f"t{i}": half for i in range(4)})  # noqa: E731
    yield from refused("texts that only together are too many", several, "'t1'", "2 MB")


CASES = list(cases())

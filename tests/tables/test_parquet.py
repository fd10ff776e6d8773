"""Parquet that writers write is read as it is; what a column will take is known from its pages, whatever the file says."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from l2m_core.errors import CohortError
from l2m_core.tables.parquet_pages import description_size, measure, row_groups
from l2m_core.tables.reading import read_table
from l2m_core.tables.table import Limits, NumberColumn, RefusedColumn, Table, TextColumn
from tests.tables.hostile.parquet_bytes import varint

ROWS = 30
WORDS = ["low", "high", None] * 10
NUMBERS: list[Any] = [1.5, -2.0, None] * 10


def table_of(columns: dict[str, Any], **options: Any) -> Table:
    return read_table(written(pa.table(columns), **options))


def written(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def cells(table: Table, name: str) -> list[str]:
    column = table.column(name)
    assert isinstance(column, TextColumn), column
    return column.cells()


TEXTS = ["low", "high", ""] * 10


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_texts_of_every_type_are_read(kind: pa.DataType, use_dictionary: bool) -> None:
    assert cells(table_of({"a": pa.array(WORDS).cast(kind)}, use_dictionary=use_dictionary), "a") == TEXTS


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_numbers_are_read_with_their_gaps(kind: pa.DataType) -> None:
    column = table_of({"a": pa.array(NUMBERS, pa.float64()).cast(kind)}).column("a")
    assert isinstance(column, NumberColumn)
    assert np.array_equal(column.values, np.array(NUMBERS, dtype=float), equal_nan=True)


def test_other_values_are_read_as_they_would_stand_in_a_csv() -> None:
    table = table_of(
        {
            "whole": pa.array([1, None, 3] * 10),
            "truth": pa.array([True, False, None] * 10),
            "decimal": pa.array([Decimal("1.50"), Decimal("2.25"), None] * 10),
            "day": pa.array([datetime.date(2020, 1, 2), None, None] * 10),
            "nothing": pa.nulls(ROWS),
        }
    )
    whole = table.column("whole")
    assert isinstance(whole, NumberColumn) and np.array_equal(whole.values, [1, np.nan, 3] * 10, equal_nan=True)
    assert cells(table, "truth") == ["True", "False", ""] * 10
    assert cells(table, "decimal") == ["1.5", "2.25", ""] * 10
    assert cells(table, "day") == ["2020-01-02", "", ""] * 10
    assert cells(table, "nothing") == [""] * ROWS


def test_columns_that_cannot_be_used_are_named_and_the_others_read() -> None:
    table = table_of(
        {
            "lists": pa.array([[1], []] * 15),
            "group": pa.array([{"a": 1, "b": "x"}] * ROWS),
            "bytes": pa.array([b"a"] * ROWS),
            "a": pa.array(WORDS),
            "id": pa.array([b"0" * 16] * ROWS, pa.uuid()),
            "seen": pa.array([0] * ROWS, pa.timestamp("us")),
            "took": pa.array([0] * ROWS, pa.duration("s")),
            "json": pa.array(['{"a": 1}'] * ROWS, pa.json_()),
            "b": pa.array(NUMBERS),
        }
    )
    problems = {
        name: c.problem for name, c in zip(table.names, table.columns, strict=True) if isinstance(c, RefusedColumn)
    }
    assert set(problems) == set(table.names) - {"a", "b"}
    assert all(f"'{name}'" in problem for name, problem in problems.items())
    assert "dates" in problems["seen"] and "numbers or texts" in problems["lists"]
    assert cells(table, "a") == TEXTS


def test_a_column_whose_name_reads_like_a_place_in_a_group_is_not_taken_for_it() -> None:
    table = table_of(
        {"a": pa.array([{"b": "inner"}] * ROWS), "a.b": pa.array([str(i) for i in range(ROWS)]), "c": NUMBERS}
    )
    assert isinstance(table.column("a"), RefusedColumn)
    second = table.column("a.b")
    assert isinstance(second, RefusedColumn) or cells(table, "a.b") == [str(i) for i in range(ROWS)]
    assert isinstance(table.column("c"), NumberColumn)


def test_numbers_under_one_name_are_told_apart_and_texts_are_refused_by_name() -> None:
    arrays = [pa.array(range(ROWS)), pa.array(range(1, ROWS + 1))]
    table = read_table(written(pa.Table.from_arrays(arrays, ["x", "x"])))
    assert table.names == ("x", "x (2)") and all(isinstance(column, NumberColumn) for column in table.columns)
    table = read_table(written(pa.Table.from_arrays([pa.array(WORDS)] * 2, ["x", "x"])))
    problems = [column.problem for column in table.columns if isinstance(column, RefusedColumn)]
    assert problems and "Rename it" in problems[0]


def test_many_row_groups_and_categories_that_no_row_has_are_read() -> None:
    categories = pd.Categorical.from_codes([i % 3 for i in range(3000)], [f"level {i}" for i in range(1000)])
    frame = pd.DataFrame({"a": categories, "b": range(3000)})
    buffer = io.BytesIO()
    frame.to_parquet(buffer, row_group_size=100)
    table = read_table(buffer.getvalue())
    assert cells(table, "a") == [f"level {i % 3}" for i in range(3000)]


def test_texts_of_all_columns_together_are_bounded_as_those_of_a_csv_are() -> None:
    limits = Limits(megabytes=1)
    half = pa.array(["x" * 6000] * 100)
    table = read_table(written(pa.table({"a": half, "b": half, "c": ["y"] * 100})), limits=limits)
    assert [isinstance(column, RefusedColumn) for column in table.columns] == [False, True, False]


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_pages_measure_what_their_writer_counted(compression: str, version: str, use_dictionary: bool) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=5000), "t": rng.choice(["a", "bb", "ü" * 100], 5000), "n": [None] * 5000})
    data = written(
        table,
        compression=compression,
        data_page_version=version,
        use_dictionary=use_dictionary,
        data_page_size=500,
        write_batch_size=100,
        row_group_size=1500,
        write_statistics=False,
    )
    metadata = pq.read_metadata(io.BytesIO(data))
    for place in range(3):
        chunks = [metadata.row_group(i).column(place) for i in range(metadata.num_row_groups)]
        pages = measure(data, [group.chunks[place] for group in row_groups(data)])
        counted = sum(chunk.total_uncompressed_size for chunk in chunks)  # with the headers
        assert abs(counted - pages.unpacked) < 150 * pages.count
        assert pages.count >= len(chunks)
        assert pages.encodings <= {0, 2, 3, 8}
        if place == 1:
            assert pages.distinct == (3 * len(chunks) if use_dictionary else 0)
    assert read_table(data).rows == 5000


def test_a_damaged_byte_anywhere_ends_in_a_table_or_a_refusal() -> None:
    data = written(pa.table({"a": WORDS, "b": NUMBERS, "c": pa.array([[1]] * ROWS)}), compression="zstd")
    rng = np.random.default_rng(0)
    for _ in range(1500):
        damaged = bytearray(data)
        for place in rng.integers(4, len(data), rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        try:
            read_table(bytes(damaged))
        except CohortError as refusal:
            assert str(refusal)


def test_what_a_file_declares_is_not_what_it_takes() -> None:
    """pyarrow believes the description and unpacks all the same; the pages tell the truth."""
    data = written(pa.table({"a": np.zeros(1_000_000)}), use_dictionary=False, compression="zstd")
    length = description_size(data)
    true = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).total_uncompressed_size
    description = data[-8 - length : -8].replace(varint(2 * true), padded(2 * 1000, len(varint(2 * true))))
    lying = data[: -8 - length] + description + data[-8:]
    file = pq.ParquetFile(io.BytesIO(lying))
    assert file.metadata.row_group(0).column(0).total_uncompressed_size == 1000
    assert file.read().nbytes >= 8_000_000
    assert measure(lying, row_groups(lying)[0].chunks[:1]).unpacked >= 8_000_000


def padded(number: int, length: int) -> bytes:
    """A variable-length number in more bytes than it needs."""
    short = varint(number)
    return short[:-1] + bytes([short[-1] | 128]) + b"\x80" * (length - len(short) - 1) + b"\0"

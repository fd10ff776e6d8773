"""Parquet becomes the same table of columns that CSV becomes, within bounds that hold whatever the file says of itself.

Repeated values take next to nothing in Parquet: a file of a kilobyte can hold gigabytes. So only columns that can be used
are read, one at a time; what each takes is known before; and texts stay dictionary-coded, so that repeats cost nothing.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from l2m_core.errors import CohortError
from l2m_core.tables.cell_parsing import DATE_ADVICE, LARGEST_WHOLE
from l2m_core.tables.frames import column_of
from l2m_core.tables.parquet_pages import Chunk, Pages, description_size, measure, row_groups
from l2m_core.tables.table import Column, Limits, RefusedColumn, Table, TextColumn, check_size, clean_names

SMALLER = 25  # times that a file's description is than a file may be; as objects it takes a hundred times its size
LONGEST_LIST = 10_000  # of columns or row groups in the file's description
WIDEST_NUMBER = 32  # bytes
BYTES = "BYTE_ARRAY"  # how Parquet calls values of any length, texts among them
UNBOUNDED = {6, 7}  # encodings by differences of lengths and texts: how much they unfold into, only unfolding tells


@dataclass(frozen=True)
class _Stored:
    """A column as the file describes it. leaf and chunks (of each row group): only where it is one value a row."""

    position: int
    name: str
    kind: Any  # the Arrow type that it is read as
    leaf: Any = None
    chunks: tuple[Chunk, ...] = ()


def table_from_parquet(data: bytes, limits: Limits, name: str) -> Table:
    try:
        import pyarrow
    except ImportError as error:
        raise CohortError("Reading Parquet needs pyarrow: pip install pyarrow, or save the table as CSV.") from error
    try:
        return _read(data, limits, name)
    except CohortError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError) as error:
        raise CohortError("The Parquet file is damaged or of an unknown kind. Export it again, or as CSV.") from error


def _read(data, limits, name) -> Table:
    file = _open(data, limits)
    names, repeated, warnings = clean_names(file.schema_arrow.names)
    stored = _described(data, file, names)
    problems = [_problem(column) for column in stored]
    _check_pages(data, stored, problems, limits)
    columns: list[Column] = []
    left = limits.size  # for texts: as a CSV, too, could hold no more
    for column, problem in zip(stored, problems, strict=True):
        columns.append(_column(file, column, limits, left) if problem is None else RefusedColumn(problem))
        left -= len(columns[-1].joined) if isinstance(columns[-1], TextColumn) else 0
    rows = np.arange(file.metadata.num_rows)
    return Table(names, tuple(columns), rows, tuple(warnings), name, repeated=repeated)


def _open(data, limits):
    """Nothing but the file's description is read yet."""
    from pyarrow.parquet import ParquetFile

    if limits.size // SMALLER < description_size(data) < len(data):
        raise CohortError("The Parquet file is in too many pieces to be read. Write it again, in one row group.")
    metadata = ParquetFile(io.BytesIO(data), thrift_container_size_limit=LONGEST_LIST).metadata
    texts = [leaf.path for leaf in _leaves(metadata) if _is_flat(leaf) and leaf.physical_type == BYTES]
    file = ParquetFile(io.BytesIO(data), read_dictionary=texts, thrift_container_size_limit=LONGEST_LIST)
    check_size(metadata.num_rows, max(metadata.num_columns, len(file.schema_arrow)), limits)
    return file


def _leaves(metadata) -> list[Any]:
    return [metadata.schema.column(i) for i in range(metadata.num_columns)]


def _is_flat(leaf) -> bool:
    return leaf.path == leaf.name and leaf.max_repetition_level == 0


def _described(data, file, names: Sequence[str]) -> list[_Stored]:
    groups = row_groups(data)
    if sum(group.rows for group in groups) != file.metadata.num_rows:
        raise ValueError("the row groups do not add up to the table")
    leaves = _leaves(file.metadata)
    flat = iter([i for i, leaf in enumerate(leaves) if _is_flat(leaf)])
    found = []
    for position, (field, name) in enumerate(zip(file.schema_arrow, names, strict=True)):
        if _is_nested(field.type):
            found.append(_Stored(position, name, field.type))
            continue
        at = next(flat, -1)
        chunks = tuple(group.chunks[at] for group in groups)
        if leaves[at].name != field.name or [c.values for c in chunks] != [g.rows for g in groups]:
            raise ValueError("a column does not fit the table")
        found.append(_Stored(position, name, field.type, leaves[at], chunks))
    return found


def _is_nested(kind) -> bool:
    from pyarrow import BaseExtensionType, types

    return types.is_nested(kind.storage_type if isinstance(kind, BaseExtensionType) else kind)


def _problem(column: _Stored) -> str | None:
    """Why no cohort can use it, as far as its type tells."""
    from pyarrow import types

    if types.is_timestamp(column.kind) or types.is_duration(column.kind):
        return f"Column '{column.name}' holds dates or times. {DATE_ADVICE}"
    if types.is_string(column.kind) or types.is_large_string(column.kind):  # read_dictionary goes by name
        return f"Column '{column.name}' cannot be told from another of its name. Rename it."
    if column.leaf is None or not _is_usable(column.kind, column.leaf):
        return f"Column '{column.name}' holds lists, groups or bytes; cells must be numbers or texts."
    return None


def _is_usable(kind, leaf) -> bool:
    """Values of a bounded width, and texts as a dictionary: of any other, few bytes can unfold into very many."""
    from pyarrow import types

    if leaf.physical_type == BYTES:
        text = types.is_dictionary(kind) and (
            types.is_string(kind.value_type) or types.is_large_string(kind.value_type)
        )
        return text or types.is_null(kind)
    if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and leaf.length > WIDEST_NUMBER:
        return types.is_null(kind)
    tests = (
        types.is_null,
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_decimal,
        types.is_date,
        types.is_time,
    )
    return any(test(kind) for test in tests)


def _check_pages(data, stored: list[_Stored], problems: list[str | None], limits) -> None:
    """Before any page is unpacked; a column of which one can tell that it takes too much gets its problem."""
    from pyarrow import types

    count = unpacked = 0
    for position, column in enumerate(stored):
        if problems[position] is None and not types.is_null(column.kind):
            pages = measure(data, column.chunks, count)
            problems[position] = _size_problem(column, pages, limits)
            count += pages.count
            unpacked += 0 if problems[position] else pages.unpacked
    if unpacked > 4 * limits.size:
        raise CohortError(f"The Parquet file unpacks to more than {4 * limits.megabytes} MB. Keep what matters.")


def _size_problem(column: _Stored, pages: Pages, limits) -> str | None:
    from pyarrow import types

    if pages.encodings & UNBOUNDED:
        return (
            f"Column '{column.name}' is stored in an encoding that can unfold without bound. Save it with dictionary "
            "encoding, or the table as CSV."
        )
    too_much = pages.unpacked > 2 * limits.size or pages.distinct > 4 * limits.rows  # each row group has a dictionary
    if types.is_dictionary(column.kind) and too_much:
        return f"Column '{column.name}' holds more than {limits.megabytes} MB of text. Leave it out."
    return None


def _column(file, column: _Stored, limits, left: int) -> Column:
    from pyarrow import types

    if types.is_null(column.kind):
        return TextColumn.of([""] * file.metadata.num_rows)
    cells = file.reader.read_column(column.position)
    # Whole numbers with holes would become floats, which cannot tell codes of 17 digits apart.
    whole = types.is_integer(column.kind) and cells.null_count and _is_beyond_floats(cells)
    return column_of(cells.to_pandas(integer_object_nulls=bool(whole)), column.name, limits, left)


def _is_beyond_floats(cells) -> bool:
    from pyarrow import compute

    ends = compute.min_max(cells).as_py()
    return ends["max"] is not None and max(abs(ends["min"]), abs(ends["max"])) > LARGEST_WHOLE

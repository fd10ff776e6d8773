"""The patients whom `python -m train acquire` answers for: a CSV of any size, row after row, or an Excel workbook or
Parquet file, which is read as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, ConfigError
from l2m_core.schema import did_you_mean
from l2m_core.tables.reading import RowStream, clean_names, is_read_as_a_whole, read_table
from l2m_core.tables.table import DELIMITERS, Limits, RefusedColumn, Table

Cell = str | float | None
Row = Sequence[Cell]
LIMITS = Limits(megabytes=500, rows=1_000_000)  # of a file that is read as a whole


@dataclass(frozen=True)
class PatientsFile:
    """A file's columns, and its patients as often as they are asked for: texts, and numbers where the file has numbers."""

    name: str
    header: list[str]
    rows: Callable[[], Iterator[Row]]


def open_patients(path: Path, cohort: Cohort, keep: Sequence[str] = (), sheet: str | None = None) -> PatientsFile:
    """Refuses a file without patients, without a column to keep, or with a column that is unknown or cannot be used."""
    readable = {*cohort.schema.names, cohort.schema.outcome.name, *keep}
    with path.open("rb") as file:
        start = file.read(4)
    if is_read_as_a_whole(start):
        table = _read_whole(path, sheet)
        patients = PatientsFile(path.name, list(table.names), partial(_rows_of_table, table))
        _refuse_columns(table, path.name, {*cohort.names, *keep})
    elif sheet is not None:
        raise ConfigError(f"{path.name} is no Excel workbook, so it has no sheet '{sheet:.40}'.")
    else:
        delimiter = _delimiter(path, cohort, readable)
        header = list(clean_names(next(_records(path, delimiter), []))[0])
        patients = PatientsFile(path.name, header, partial(_rows_of_text, path, delimiter))
    if next(patients.rows(), None) is None:
        raise CohortError(f"{path.name} holds no patients.")
    for name in keep:
        if name not in patients.header:
            raise ConfigError(f"{path.name} has no column {name!r} to keep.{did_you_mean(name, patients.header)}")
    for name in patients.header:
        if name not in readable:
            raise ConfigError(
                f"{path.name} has a column {name!r} that the cohort has not.{did_you_mean(name, cohort.names)} Correct its "
                "name, copy it to the answers with --keep, or leave it out."
            )
    return patients


# CSV


def _rows_of_text(path: Path, delimiter: str) -> Iterator[Row]:
    """As texts, all of one length: no repair of another is safe."""
    width = 0
    for number, row in enumerate(_records(path, delimiter)):
        width = width or len(row)
        if len(row) != width:
            raise CohortError(
                f"Row {number:,} of {path.name} has {len(row)} cells, but the header has {width}. Correct it."
            )
        if number:
            yield row


def _records(path: Path, delimiter: str) -> Iterator[list[str]]:
    read = 0
    try:
        for row in RowStream.of(path).rows(delimiter):
            read += 1
            yield row
    except CohortError as error:
        raise CohortError(f"{path.name} cannot be read as CSV after row {read:,}: {error}") from error


def _delimiter(path: Path, cohort: Cohort, readable: set[str]) -> str:
    """The one with the most known names in the header, then the most names; of equals the cohort's, or a comma."""
    own = getattr(cohort.source, "delimiter", None) or ","
    try:
        stream = RowStream.of(path)
    except CohortError:  # told, with the file's name, when its header is read
        return own
    headers = {delimiter: _header(stream, delimiter) for delimiter in (own, *DELIMITERS)}
    return max(headers, key=lambda delimiter: (len(readable.intersection(headers[delimiter])), len(headers[delimiter])))


def _header(stream: RowStream, delimiter: str) -> list[str]:
    """No names where the row cannot be parted so: with quotes around names, a wrong sign is an error."""
    try:
        return list(clean_names(next(stream.rows(delimiter), []))[0])
    except CohortError:
        return []


# Excel and Parquet


def _read_whole(path: Path, sheet: str | None) -> Table:
    try:
        return read_table(path, limits=LIMITS, sheet=sheet)
    except CohortError as error:
        problem = str(error).replace("sheet=", "--patients-sheet ")
        raise CohortError(f"{path.name} cannot be read: {problem} A CSV of patients may have any size.") from error


def _rows_of_table(table: Table) -> Iterator[Row]:
    nothing = [None] * table.rows  # of a column that cannot be used, and is not
    yield from zip(*(nothing if isinstance(one, RefusedColumn) else one.cells() for one in table.columns), strict=True)


def _refuse_columns(table: Table, name: str, wanted: set[str]) -> None:
    for column, cells in zip(table.names, table.columns, strict=True):
        if isinstance(cells, RefusedColumn) and column in wanted:
            raise CohortError(f"{name}: {cells.problem}")

"""Reads patients from a text or a file: CSV as the cohort's own, an Excel workbook, JSON records, or a FHIR R4 Bundle. The
content tells which.

Values are read by the cohort's own rules. What cannot be used is listed with its reason and never guessed.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Any

from l2m_core.cohort import Cohort
from l2m_core.errors import FeatureError, InputError
from l2m_core.patients.fhir import read_bundle
from l2m_core.patients.records import BroughtPatients, PatientRecord, RecordMaker
from l2m_core.patients.results import columns_of_results, read_results
from l2m_core.schema import did_you_mean
from l2m_core.step_through.strict_json import read_json
from l2m_core.tables.measurements import problem_of_results
from l2m_core.tables.reading import DELIMITERS, read_table, sheets_of
from l2m_core.tables.table import Column, Limits, NumberColumn, RefusedColumn, Table, TextColumn

MEGABYTES = 5
MOST_PATIENTS = 1000
LIMITS = Limits(megabytes=MEGABYTES, rows=MOST_PATIENTS, measurements=MOST_PATIENTS)
HINT = "Give one object of feature: value, a list of them, or a FHIR Bundle."


def read_patients(source: str | bytes, cohort: Cohort) -> BroughtPatients:
    """Every patient that `source` holds; an InputError where it holds nothing that this cohort can use."""
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(data) > MEGABYTES * 1_000_000:
        raise InputError(f"This is larger than {MEGABYTES} MB. Bring fewer patients at a time.")
    if not data.strip():
        raise InputError("There is nothing to read. Paste a row with its column names, JSON, or a FHIR Bundle.")
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return _from_json(data, cohort)
    return _from_table(_table_of(data), cohort)


def records_of(rows: list[Mapping[str, Any]], cohort: Cohort) -> tuple[PatientRecord, ...]:
    """One record for each mapping of feature to value."""
    single = len(rows) == 1
    return tuple(_record(row, cohort, "patient" if single else f"patient {i}") for i, row in enumerate(rows, 1))


# Tables


def _table_of(data: bytes) -> Table:
    if data.startswith(b"PAR1"):
        raise InputError("This is a Parquet file, which holds a cohort. Bring a patient as CSV, JSON or a FHIR Bundle.")
    if data.lstrip(b"\xef\xbb\xbf\x0b \t\r\n").startswith(b"MSH|"):  # else it is a table whose rows are ragged
        raise InputError(
            "This is an HL7 v2 message, which is not read. Bring its results as a FHIR Bundle, or as a table with a line "
            "for each result: its test or LOINC code, value and unit."
        )
    sheets = sheets_of(data, LIMITS)
    if len(sheets) > 1:
        raise InputError("The Excel workbook has several sheets with cells. Keep the one with the patients.")
    if sheets:
        return read_table(data, limits=LIMITS)
    lines = [line for line in data.splitlines() if line.strip()]
    if len(lines) == 1:
        raise InputError(
            "There is one line only. The first line names the columns, and each one below it is a patient."
        )
    has_columns = any(sign.encode() in lines[0] for sign in DELIMITERS)
    return read_table(data, None if has_columns else ",", LIMITS)


def _from_table(table: Table, cohort: Cohort) -> BroughtPatients:
    cells = {name: _cells(column) for name, column in zip(table.names, table.columns, strict=True)}
    if (named := columns_of_results(table, cohort)) is not None:
        usable = {name: values for name, values in cells.items() if not isinstance(values, RefusedColumn)}
        return BroughtPatients("results", tuple(read_results(usable, named, cohort)), table.warnings)
    if not set(table.names) & set(cohort.names) and (problem := problem_of_results(table)):
        raise FeatureError(problem)
    _check_names(table.names, cohort, "columns", "The first line must hold their names")
    makers = [RecordMaker(cohort, f"row {number}") for number in table.row_numbers.tolist()]
    for row, maker in enumerate(makers):
        for name, values in cells.items():
            if name in table.repeated:
                maker.leave(name, "The name stands more than once, so it is not clear which column counts.", "doubt")
            elif isinstance(values, RefusedColumn) and name in cohort.names:
                maker.leave(name, values.problem, "value")
            elif isinstance(values, RefusedColumn):
                maker.take(name, "")  # which says why it is not read
            elif values[row] is not None:
                maker.take(name, values[row])
    return BroughtPatients("table", tuple(maker.done() for maker in makers), table.warnings)


def _cells(column: Column) -> list[str | float | None] | RefusedColumn:
    """None where nothing is written."""
    if isinstance(column, TextColumn):
        return [cell if cell.strip() else None for cell in column.cells()]
    return [*column.cells()] if isinstance(column, NumberColumn) else column


def _check_names(names: tuple[str, ...], cohort: Cohort, what: str, remedy: str) -> None:
    """Refuses a row of another cohort, and a row that came without its names."""
    if any(name in cohort.names for name in names):
        return
    raise FeatureError(
        f"None of the {what} is one of this cohort's. {remedy}, as the cohort's table has them."
        f"{did_you_mean(names[0], cohort.names)}"
    )


# JSON


def _from_json(data: bytes, cohort: Cohort) -> BroughtPatients:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("This JSON is not UTF-8 text. Save it as UTF-8.") from None
    return from_plain(read_json(text, "This text", HINT, repeats=False), cohort)


def from_plain(value: Any, cohort: Cohort) -> BroughtPatients:
    """What JSON holds: a Bundle, a record, or a list of records."""
    if isinstance(value, Mapping) and "resourceType" in value:
        return read_bundle(value, cohort, MOST_PATIENTS)
    rows = [value] if isinstance(value, Mapping) else value
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"This JSON holds no patient. {HINT}")
    if len(rows) > MOST_PATIENTS:
        raise InputError(f"There are {len(rows):,} patients; at most {MOST_PATIENTS:,} are read at a time.")
    names = tuple(dict.fromkeys(_composed(name) for row in rows for name in row))
    if names:
        _check_names(names, cohort, "names", "Each value needs its feature's name")
    return BroughtPatients("JSON", records_of(rows, cohort))


def _record(row: Mapping[str, Any], cohort: Cohort, label: str) -> PatientRecord:
    maker = RecordMaker(cohort, label)
    names = [_composed(name) for name in row]
    times = Counter(names)
    for name, value in zip(names, row.values(), strict=True):
        if times[name] > 1:
            maker.leave(name, "The name stands more than once, so it is not clear which value counts.", "doubt")
        elif isinstance(value, Mapping | list):
            maker.leave(name, "It holds more than one value. Give a number or a text.", "value")
        else:
            maker.take(name, value)
    return maker.done()


def _composed(name: str) -> str:
    """As the cohort's own names are, whose ü is one character: some computers write it as two."""
    return unicodedata.normalize("NFC", name)

"""A table with a row for each measurement, as laboratories export it, becomes one with a row for each patient.

patient, test,   value, unit,   sex          patient, sex, sodium (mmol/L), crp (mg/L)
1,       sodium, 139,   mmol/L, f       →    1,       f,   139,             4.2
1,       crp,    4.2,   mg/L,   f            2,       m,   ,                0.9
2,       crp,    0.9,   mg/L,   m
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd

from l2m_core.errors import CohortError
from l2m_core.tables.cell_parsing import are_numbers, is_missing, number_text, unit_key
from l2m_core.tables.patient_ids import FEWEST_PATIENTS, PATIENT_NAME
from l2m_core.tables.table import (
    DEFAULT_LIMITS,
    Column,
    Limits,
    NumberColumn,
    RefusedColumn,
    Table,
    TextColumn,
    check_size,
    clean_names,
)

FIRST, LAST = "first", "last"
WHICH = (FIRST, LAST)
"""Of several results that a patient has of one test, the one that is taken, in the order of the file."""
FEWEST_OF_ONE = 1.5  # tests of a patient, on average
FEWEST_OF_A_TEST = 5  # rows, on average
FEWEST_OF_NA = 5  # rows with NA in place of a test's name, which may mean that none was written
MOST_NAMED = 8

# Names without accents, in small letters, words joined by a blank.
_TEST_NAME = re.compile(
    r"(?:(?:lab|test|item|concept|component|analyte?|parameter|variable|measure(?:ment)?|observation|exam(?:en)?|loinc|"
    r"untersuchung|bezeichnung|messgrosse|parametre|prueba|analito|esame|parametro)(?: (?:name|label|type|id|code|text))?|"
    r"label|itemid|analyse)"
)
_VALUE_NAME = re.compile(
    r"(?:(?:lab|test|numeric|measured|observed) )?(?:value|values|valuenum|val|result|results|wert|ergebnis|messwert|resultat|"
    r"valeur|resultado|valor|risultato|valore)(?: (?:num|number|numeric|as number|value|text))?"
)
_UNIT_NAME = re.compile(r"(?:.+ )?(?:unit|units|uom|valueuom|einheit|unite|unidad|unita)(?: name)?")


@dataclass(frozen=True)
class Measurements:
    """The columns that make a table one of measurements, by name."""

    patient: str
    test: str
    value: str
    unit: str | None = None

    def __str__(self) -> str:
        return f"'{self.test}' names the test and '{self.value}' is its result"


@dataclass(frozen=True)
class Named:
    """Columns that may make a table one of measurements, by their names."""

    tests: tuple[str, ...]
    values: tuple[str, ...]
    patients: tuple[str, ...]
    unit: str | None


def find_measurements(table: Table) -> Measurements | None:
    """By the names of the columns, and by whether patients have rows of several tests each."""
    named = columns_of_measurements(table)
    if named is None:
        return None
    codes = {name: _codes(table.column(name))[0] for name in named.patients}
    codes |= {name: _codes_of_tests(table.column(name))[0] for name in named.tests}
    for patient, test in product(named.patients, named.tests):
        results = [name for name in named.values if name != test]
        if results and _are_of_patients(codes[patient], codes[test]):
            return Measurements(patient, test, results[0], named.unit)
    return None


def columns_of_measurements(table: Table) -> Named | None:
    """Those of a table, the best first; None where none names a test, or none its result."""
    columns = dict(zip(table.names, table.columns, strict=True))
    named = _named_columns([name for name, column in columns.items() if not isinstance(column, RefusedColumn)])
    if named is None:
        return None
    # Of several columns that name the test, a name tells more than a number; of several results the one with more of them.
    tests = sorted(named.tests, key=lambda name: are_numbers(_codes_of_tests(columns[name])[1]))
    recorded = {name: int((_codes(columns[name])[0] >= 0).sum()) for name in named.values}
    values = sorted(named.values, key=lambda name: (-recorded[name], isinstance(columns[name], TextColumn)))
    return replace(named, tests=tuple(tests), values=tuple(values))


def problem_of_results(table: Table) -> str:
    """Why what its name calls the results cannot be read; empty where nothing hinders it."""
    refused = {
        name: column.problem
        for name, column in zip(table.names, table.columns, strict=True)
        if isinstance(column, RefusedColumn)
    }
    return " ".join(refused[name] for name in _named(refused, _VALUE_NAME))


def may_be_measurements(names: Sequence[str]) -> bool:
    """Whether columns of these names could make a table one of measurements of several patients."""
    named = _named_columns(names)
    return named is not None and bool(named.patients)


def _named_columns(names: Sequence[str]) -> Named | None:
    tests, values = _named(names, _TEST_NAME), _named(names, _VALUE_NAME)
    patients = [name for name in names if PATIENT_NAME.fullmatch(name) and name not in tests]
    unit = next(iter(_named(names, _UNIT_NAME)), None)
    is_one = any(value != test for test in tests for value in values)
    return Named(tuple(tests), tuple(values), tuple(patients), unit) if is_one else None


def as_they_are(found: Measurements) -> str:
    """What is said of a table that is taken as it is."""
    return (
        f"Each row seems to be a measurement ({found}), not a patient. State measurements: 'first' (or 'last'), to make a row "
        "for each patient, of the first (last) result of each test."
    )


def _named(names: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    return [name for name in names if pattern.fullmatch(_plain(name))]


def _plain(name: str) -> str:
    """TestName → test name"""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|[_.\-]+", " ", name)
    letters = unicodedata.normalize("NFKD", parted.replace("ß", "ss"))
    return " ".join("".join(c for c in letters if not unicodedata.combining(c)).casefold().split())


def _are_of_patients(patients: np.ndarray, tests: np.ndarray) -> bool:
    known = (patients >= 0) & (tests >= 0)
    pairs = len({*zip(patients[known].tolist(), tests[known].tolist(), strict=True)})
    of_patients, of_tests = len(np.unique(patients[known])), len(np.unique(tests[known]))
    is_repeated = pairs >= FEWEST_OF_ONE * of_patients and known.sum() >= FEWEST_OF_A_TEST * of_tests
    return of_patients >= FEWEST_PATIENTS and of_tests > 1 and bool(is_repeated)


def one_row_each(
    table: Table, which: str = FIRST, found: Measurements | None = None, limits: Limits = DEFAULT_LIMITS
) -> Table:
    """A row for each patient, with a column for each test. What is the same in all rows of each patient is kept.

    which: 'first' or 'last', of several results of one test; found: the columns, where they are known already.
    """
    if which not in WHICH:
        raise CohortError(f"measurements is {which!r}; it must be one of {', '.join(WHICH)}.")
    found = found or find_measurements(table)
    if found is None:
        raise CohortError(
            problem_of_results(table)
            or "The table has no row for each measurement: columns such as 'patient_id', 'test' and 'value', of which each "
            "patient has several rows, were not found."
        )
    return _Turned(table, found, which).table(limits)


class _Turned:
    def __init__(self, source: Table, found: Measurements, which: str) -> None:
        self.source, self.found, self.which = source, found, which
        self.codes = {
            name: _codes(column)
            for name, column in zip(source.names, source.columns, strict=True)
            if not isinstance(column, RefusedColumn)
        }
        (patients, _), (tests, self.tests) = self.codes[found.patient], _codes_of_tests(source.column(found.test))
        self.used = np.flatnonzero((patients >= 0) & (tests >= 0))  # rows
        self.of_test = tests[self.used]
        # Patients are counted anew, in the order of their first rows, as some may have no row that is used.
        _, starts, of_patient = np.unique(patients[self.used], return_index=True, return_inverse=True)
        order = starts.argsort()
        self.of_patient, self.first_rows = order.argsort()[of_patient], self.used[starts[order]]
        self.count = len(starts)

    def table(self, limits: Limits) -> Table:
        said = (self.found.test, self.found.value, self.found.unit)
        others = [name for name in self.source.names if name not in said]
        kept = [name for name in others if self._is_of_patient(name)]
        left_out = [name for name in others if name not in kept]
        check_size(self.count, len(kept) + len(self.tests), limits)
        units = list(self._units())
        # The tests stand where their names stood, so that what is known first stays first, and an outcome last.
        first = sum(self.source.names.index(name) < self.source.names.index(self.found.test) for name in kept)
        tests = [
            with_unit(test, unit[0] if len(unit) == 1 else "") for test, unit in zip(self.tests, units, strict=True)
        ]
        names, repeated, warnings = clean_names([*kept[:first], *tests, *kept[first:]])
        of_patients = [self._take(_cells(self.source.column(name)), self._rows_of_patient(name)) for name in kept]
        columns: list[Column] = []
        results, written = _cells(self.source.column(self.found.value)), self.codes[self.found.value][0][self.used] >= 0
        taken = 0
        for number, unit in enumerate(units):
            rows = self._rows_of_test(number, written)
            taken += int((rows >= 0).sum())
            problem = self._problem(names[first + number], unit)
            columns.append(self._take(results, rows) if problem is None else RefusedColumn(problem))
        warnings = [*self._said(left_out, int(written.sum()) - taken), *warnings]
        return replace(
            self.source,
            names=names,
            columns=(*of_patients[:first], *columns, *of_patients[first:]),
            row_numbers=self.source.row_numbers[self.first_rows],
            warnings=(*self.source.warnings, *warnings),
            repeated=repeated,
            left_out=frozenset(left_out),
        )

    # -- rows

    def _is_of_patient(self, name: str) -> bool:
        """Whether all rows of each patient have the same there, where anything."""
        if name not in self.codes:
            return False
        codes = self.codes[name][0][self.used]
        some = codes >= 0
        pairs = {*zip(self.of_patient[some].tolist(), codes[some].tolist(), strict=True)}
        return len(pairs) == len({patient for patient, _ in pairs})

    def _rows_of_patient(self, name: str) -> np.ndarray:
        """(patients,) a row that holds what is the same in all of the patient's rows; -1 where none does."""
        return self._latest(np.flatnonzero(self.codes[name][0][self.used] >= 0))

    def _rows_of_test(self, number: int, written: np.ndarray) -> np.ndarray:
        """(patients,) the row of the result that is taken; -1 where there is none."""
        positions = np.flatnonzero((self.of_test == number) & written)
        return self._latest(positions if self.which == LAST else positions[::-1])

    def _latest(self, positions: np.ndarray) -> np.ndarray:
        rows = np.full(self.count, -1)
        rows[self.of_patient[positions]] = self.used[positions]  # of several rows of a patient the last one stays
        return rows

    @staticmethod
    def _take(cells: np.ndarray | list[str], rows: np.ndarray) -> Column:
        if isinstance(cells, np.ndarray):
            return NumberColumn(np.where(rows >= 0, cells[rows], np.nan))
        return TextColumn.of([cells[row] if row >= 0 else "" for row in rows.tolist()])

    # -- units

    def _units(self) -> Iterator[list[str]]:
        """Of each test its units, however they are written."""
        if self.found.unit is None:
            yield from ([] for _ in self.tests)
            return
        codes, texts = self.codes[self.found.unit]
        of_rows = codes[self.used]
        for number in range(len(self.tests)):
            found = [texts[code] for code in pd.unique(of_rows[(self.of_test == number) & (of_rows >= 0)])]
            yield list({unit_key(unit): unit for unit in reversed(found)}.values())[::-1]

    def _problem(self, name: str, units: list[str]) -> str | None:
        if len(units) < 2:
            return None
        return (
            f"Column '{name}' holds results in several units: {', '.join(units[:MOST_NAMED])}. Bring them to one, or set its "
            "role to ignored."
        )

    # -- words

    def _said(self, left_out: list[str], not_taken: int) -> Iterator[str]:
        rows, without = len(self.source.row_numbers), len(self.source.row_numbers) - len(self.used)
        yield f"{rows:,} rows, one for each measurement ({self.found}), became one for each of {self.count:,} patients."
        if not_taken:
            yield f"Of several results of one test, a patient's {self.which} in the file was taken: {not_taken:,} more were not."
        if left_out:
            listed = ", ".join(f"'{name}'" for name in left_out[:MOST_NAMED])
            more = f" and {len(left_out) - MOST_NAMED} more" if len(left_out) > MOST_NAMED else ""
            yield f"Left out, as they differ between rows of a patient or cannot be read: {listed}{more}."
        if without:
            yield f"{without:,} rows were left out, as they name no patient or no test."


def with_unit(test: str, unit: str) -> str:
    """What a column of a test is called: its unit joins the name, unless that says it already."""
    return test if not unit_key(unit) or _says(test, unit) else f"{test} ({unit})"


def _says(test: str, unit: str) -> bool:
    """Whether a test's name holds its unit as a word of its own: g is none in weight."""
    letters = unit_key(unit)
    before, after = (r"\b" if end.isalnum() else "" for end in (letters[0], letters[-1]))
    pattern = before + r"\s*".join(map(re.escape, letters)) + after
    return re.search(pattern, test.replace("\u03bc", "\u00b5").casefold()) is not None


def _cells(column: Column) -> np.ndarray | list[str]:
    assert not isinstance(column, RefusedColumn)
    return column.values if isinstance(column, NumberColumn) else column.cells()


def _codes(column: Column, is_nothing: Callable[[str], bool] = is_missing) -> tuple[np.ndarray, list[str]]:
    """(N,) which text each cell is, in the order in which they come; -1 where nothing is recorded."""
    if isinstance(column, NumberColumn):
        codes, values = pd.factorize(column.values)
        return codes, [number_text(value) for value in values]
    assert isinstance(column, TextColumn)
    cells = pd.Series(column.cells(), dtype=object).str.strip()
    codes, texts = pd.factorize(cells.mask(cells.map({text: is_nothing(text) for text in cells.unique()}).astype(bool)))
    return codes, list(texts)


def _codes_of_tests(column: Column) -> tuple[np.ndarray, list[str]]:
    """The same of names of tests, among which Na and NA are sodium where they stand more than now and then."""
    is_sodium = (
        isinstance(column, TextColumn)
        and sum(text.strip().casefold() == "na" for text in column.cells()) >= FEWEST_OF_NA
    )
    return _codes(column, lambda text: is_missing(text) and not (is_sodium and text.casefold() == "na"))

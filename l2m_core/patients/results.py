"""Results as laboratories list them: a row for each, which names the test, and perhaps the unit and the patient.

A result is used where its test is the name of one feature, with its unit behind it or not, and its unit is the feature's. Of
several different results of one test none is used: which one counts is for a person to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from l2m_core.patients.records import PatientRecord, RecordMaker, other_unit, shown
from l2m_core.patients.units import same_unit
from l2m_core.schema import Feature
from l2m_core.tables.measurements import Named, columns_of_measurements, with_unit
from l2m_core.tables.table import Table

Cell = str | float | None
_UNIT_BEHIND = re.compile(r"\[([^][]*)\]$")  # as in CRP [mg/L]


@dataclass(frozen=True)
class Result:
    test: str
    value: str | float
    unit: str | None
    """None where the list has no units; empty where this result has none."""


def columns_of_results(table: Table, cohort: Cohort) -> Named | None:
    """None where the table is no list of results: a column that the cohort has as a feature names no test."""
    named = columns_of_measurements(table)
    is_feature = named is not None and any(name in cohort.names for name in (*named.tests, *named.values))
    return None if is_feature else named


def read_results(cells: Mapping[str, Sequence[Cell]], named: Named, cohort: Cohort) -> Iterator[PatientRecord]:
    """One record for each patient, in the order of their first rows. cells: of each column."""
    patients = cells[named.patients[0]] if named.patients else [None] * len(cells[named.tests[0]])
    if named.patients and None in patients:
        raise InputError(f"Some results name no patient. Fill in the column '{named.patients[0]}', or leave it out.")
    of_patients: dict[Cell, list[int]] = {}
    for row, patient in enumerate(patients):
        of_patients.setdefault(patient, []).append(row)
    for number, rows in enumerate(of_patients.values(), 1):
        # A patient's own number is not kept: labels are written into traces.
        maker = RecordMaker(cohort, f"patient {number}")
        for name in cells:
            if name in cohort.names:
                _take_same(name, [value for row in rows if (value := cells[name][row]) is not None], maker)
        results: dict[str, list[Result]] = {}
        for result in _results(cells, named, rows):
            feature = _feature_of(result, cohort)
            results.setdefault(result.test if feature is None else feature.name, []).append(result)
        for several in results.values():
            _take_result(several, maker)
        yield maker.done()


def _results(cells: Mapping[str, Sequence[Cell]], named: Named, rows: Sequence[int]) -> Iterator[Result]:
    test = named.tests[0]
    values = cells[next(name for name in named.values if name != test)]
    for row in rows:
        name, value = cells[test][row], values[row]
        if name is not None and value is not None:
            unit = None if named.unit is None else str(cells[named.unit][row] or "").strip()
            yield Result(str(name).strip(), value, unit)


def _take_same(name: str, values: Sequence[Cell], maker: RecordMaker) -> None:
    """What stands beside the results, such as the patient's sex."""
    if len({*values}) > 1:
        maker.leave(name, "It differs between the patient's rows.", "doubt")
    elif values:
        maker.take(name, values[0])


def _take_result(several: Sequence[Result], maker: RecordMaker) -> None:
    result = several[0]
    feature = _feature_of(result, maker.cohort)
    if len({(one.value, one.unit) for one in several}) > 1:
        maker.leave(result.test, f"There are {len(several)} results. Keep the one that counts.", "doubt")
    elif feature is None:
        maker.take(result.test, "")  # which says why it is not read
    elif feature.kind == "number" and result.unit is not None and not _has_unit(feature, result):
        maker.leave(result.test, other_unit(result.unit, feature), "unit")
    else:
        if feature.kind == "number" and result.unit and not feature.unit and feature.name == result.test:
            maker.notes.append(f"{shown(result.test)}: it is in {shown(result.unit)}; the schema states no unit.")
        maker.take(feature.name, result.value)


def _has_unit(feature: Feature, result: Result) -> bool:
    """Whether the feature is in the result's unit, by its schema or by its name, or in none that is stated."""
    if not feature.unit:
        return feature.name.casefold() in {result.test.casefold(), with_unit(result.test, result.unit or "").casefold()}
    return same_unit(result.unit or "", feature.unit)


def _feature_of(result: Result, cohort: Cohort) -> Feature | None:
    """By the name of the test, in capitals or not; or by that and a unit, as a list that became a cohort has it."""
    found = []
    for feature in map(cohort.feature, cohort.names):
        wanted = {with_unit(result.test, unit).casefold() for unit in ("", result.unit or "", feature.unit)}
        if {feature.name.casefold(), _UNIT_BEHIND.sub(r"(\1)", feature.name).casefold()} & wanted:
            found.append(feature)
    return found[0] if len(found) == 1 else None

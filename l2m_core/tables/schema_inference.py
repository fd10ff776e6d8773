"""From a table to a schema and arrays: what was stated holds, the rest is inferred, every liberty is a warning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from l2m_core.errors import CohortError, SchemaError, first_few
from l2m_core.schema import Feature, Overrides, Schema, did_you_mean
from l2m_core.tables.cell_parsing import are_numbers
from l2m_core.tables.column_parsing import read_column, read_columns
from l2m_core.tables.column_reading import DEFAULT_RULES, ReadingRules
from l2m_core.tables.feature_inference import infer_feature
from l2m_core.tables.outcome_inference import infer_outcome
from l2m_core.tables.patient_ids import patients_with_several_rows
from l2m_core.tables.reading_notes import CellNote, note_of_patients, notes_of_feature
from l2m_core.tables.stated_settings import how_to_read, levels_of
from l2m_core.tables.table import Column, Table, TextColumn


@dataclass(frozen=True)
class Content:
    """What inference makes of a table. x: (N, d) float32 of the used features; kept: (N,) rows of the table;
    decimals: column → its decimal sign, where the cells told it; notes: column → how its cells were read."""

    schema: Schema
    x: np.ndarray
    y: np.ndarray
    kept: np.ndarray
    warnings: tuple[str, ...]
    decimals: Mapping[str, str]
    notes: Mapping[str, tuple[CellNote, ...]]


def infer(table: Table, stated: Overrides, rules: ReadingRules = DEFAULT_RULES) -> Content:
    """stated.outcome needs a name. Rows whose outcome is missing are left out."""
    if "name" not in stated.outcome:
        raise CohortError(f"State the outcome: the column to predict.{did_you_mean('', table.names)}")
    _check_names(table, stated)
    kinds = {name: how_to_read(settings) for name, settings in stated.features.items()}
    outcome_name, rows = stated.outcome["name"], table.row_numbers
    kinds[outcome_name] = how_to_read(stated.outcome)
    by_name = dict(zip(table.names, table.columns, strict=True))
    outcome_column = by_name.pop(outcome_name)
    levels = levels_of(stated)
    reading = read_column(
        outcome_name, outcome_column, rows, rules, kinds.get(outcome_name), levels.get(outcome_name, ())
    )
    kept = np.flatnonzero(reading.present)
    outcome, y, warnings = infer_outcome(reading, kept, stated, table)
    decimals = {outcome_name: reading.decimal}
    cell_notes = {outcome_name: notes_of_feature(reading, outcome.classes, y)}
    features: dict[str, Feature] = {}
    notes: dict[str, list[str]] = {}
    problems: dict[str, str] = {}
    x = np.empty((len(kept), len(by_name)), dtype=np.float32)
    position = {name: i for i, name in enumerate(by_name)}
    # Column by column, so that only one at a time is held as 64-bit numbers.
    for name, reading in read_columns(by_name, by_name.values(), rows, kinds, rules, levels):
        settings = stated.features.get(name, {})
        decimals[name] = reading.decimal
        if settings.get("role") == "ignored":
            features[name] = Feature(**{"name": name, **settings})
        elif reading.problem is not None:
            problems[name] = reading.problem
        else:
            found = reading.rows(kept)
            features[name], values, notes[name] = infer_feature(found, stated, rows[kept])
            cell_notes[name] = notes_of_feature(found, features[name].levels, values)
            if features[name].used:
                x[:, position[name]] = values
            else:
                cell_notes[name] = (CellNote("unused", notes[name][0].removeprefix(f"Column '{name}' ")),)
        if name not in problems and (several := patients_with_several_rows(reading.rows(kept))) is not None:
            notes.setdefault(name, []).append(_of_patients(name, *several))
            cell_notes[name] = (*cell_notes.get(name, ()), note_of_patients(*several))
    if problems:
        raise CohortError(first_few([problems[name] for name in position if name in problems]))
    ordered = [features[name] for name in position]
    used = [position[feature.name] for feature in ordered if feature.used]
    if not used:
        raise CohortError("No feature is left to use: every other column is constant, empty, an identifier or ignored.")
    x = x if len(used) == x.shape[1] else x[:, used]
    x.flags.writeable = False
    warnings = [*table.warnings, *warnings, *(note for name in position for note in notes.get(name, ()))]
    return Content(
        Schema(tuple(ordered), outcome),
        x,
        y,
        kept,
        tuple(warnings),
        decimals_of_texts(table.names, table.columns, decimals),
        cell_notes,
    )


def _of_patients(name: str, patients: int, several: int, rows: int) -> str:
    return (
        f"Column '{name}': {several:,} of {patients:,} patients have several rows ({rows:,} rows). These stay together where "
        "parts of the cohort are predicted from the others; a model reads each row as a patient of its own."
    )


def decimals_of_texts(
    names: Iterable[str], columns: Iterable[Column], evidence: Mapping[str, str | None]
) -> dict[str, str]:
    """Column → its decimal sign, by the evidence of each reading. Columns of texts that do not tell it have that of the
    others, if these agree."""
    told = {name: sign for name, sign in evidence.items() if sign in (".", ",")}
    if len(set(told.values())) != 1:
        return told
    (sign,) = set(told.values())
    return {name: sign for name, column in zip(names, columns, strict=True) if isinstance(column, TextColumn)}


def _check_names(table, stated):
    name = stated.outcome["name"]
    if name not in table.names:
        headless = are_numbers(table.names)
        hint = " The first row looks like data: is the header row missing?" if headless else ""
        raise CohortError(f"There is no column '{name}' for the outcome.{did_you_mean(name, table.names)}{hint}")
    if name in table.repeated:
        raise CohortError(f"Several columns are called '{name}', the outcome. Rename or remove all but one.")
    for feature, settings in stated.features.items():
        if feature == name:
            raise SchemaError(f"'{feature}' is the outcome, so it cannot be a feature as well.")
        if feature not in table.names and settings.get("role") != "ignored":
            raise SchemaError(f"There is no column '{feature}'.{did_you_mean(feature, table.names)}")

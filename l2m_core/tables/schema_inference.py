"""From a table to a schema and arrays: what was stated holds, the rest is inferred, every liberty is a warning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from l2m_core.errors import CohortError, SchemaError, first_few
from l2m_core.schema import Feature, Overrides, Schema, did_you_mean
from l2m_core.tables.cell_parsing import are_numbers
from l2m_core.tables.column_parsing import read_column, read_columns
from l2m_core.tables.column_reading import DEFAULT_RULES, Reading, ReadingRules
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
    check_columns(table, stated)
    outcome_name, rows, levels = stated.outcome["name"], table.row_numbers, levels_of(stated)
    columns = dict(zip(table.names, table.columns, strict=True))
    reading = read_column(
        outcome_name,
        columns.pop(outcome_name),
        rows,
        rules,
        how_to_read(stated.outcome),
        levels.get(outcome_name, ()),
    )
    kept = np.flatnonzero(reading.present)
    outcome, y, warnings = infer_outcome(reading, kept, stated, table)
    found = _Features(tuple(columns), stated, kept, rows[kept])
    kinds = {name: how_to_read(settings) for name, settings in stated.features.items()}
    # Column by column, so that only one at a time is held as 64-bit numbers.
    for name, column in read_columns(columns, columns.values(), rows, kinds, rules, levels):
        found.add(name, column)
    features, x = found.in_order()
    decimals = {outcome_name: reading.decimal, **found.decimals}
    return Content(
        Schema(features, outcome),
        x,
        y,
        kept,
        (*table.warnings, *warnings, *(note for name in columns for note in found.warnings.get(name, ()))),
        decimals_of_texts(table.names, table.columns, decimals),
        {outcome_name: notes_of_feature(reading, outcome.classes, y), **found.notes},
    )


class _Features:
    """What is found in the columns beside the outcome, one after the other. kept: (n,) rows; rows: their numbers in the file."""

    def __init__(self, names: tuple[str, ...], stated: Overrides, kept: np.ndarray, rows: np.ndarray):
        self.names, self.stated, self.kept, self.rows = names, stated, kept, rows
        self.decimals: dict[str, str | None] = {}
        self.notes: dict[str, tuple[CellNote, ...]] = {}
        self.warnings: dict[str, list[str]] = {}
        self._features: dict[str, Feature] = {}
        self._problems: dict[str, str] = {}
        self._position = {name: i for i, name in enumerate(names)}
        self._x = np.empty((len(kept), len(names)), dtype=np.float32)

    def add(self, name: str, reading: Reading) -> None:
        settings = self.stated.features.get(name, {})
        self.decimals[name] = reading.decimal
        if settings.get("role") == "ignored":
            self._features[name] = Feature(**{"name": name, **settings})
        elif reading.problem is not None:
            self._problems[name] = reading.problem
            return
        else:
            self._infer(name, reading.rows(self.kept))
        if (several := patients_with_several_rows(reading.rows(self.kept))) is not None:
            self.warnings.setdefault(name, []).append(_of_patients(name, *several))
            self.notes[name] = (*self.notes.get(name, ()), note_of_patients(*several))

    def _infer(self, name: str, reading: Reading) -> None:
        feature, values, self.warnings[name] = infer_feature(reading, self.stated, self.rows)
        self._features[name] = feature
        if feature.used:
            self._x[:, self._position[name]] = values
            self.notes[name] = notes_of_feature(reading, feature.levels, values)
        else:
            self.notes[name] = (
                CellNote("unused", self.warnings[name][0].removeprefix(f"Column '{name}' ").removesuffix(".")),
            )

    def in_order(self) -> tuple[tuple[Feature, ...], np.ndarray]:
        """All features as the columns stand, and x (n, d) of the used ones; CohortError where columns could not be read."""
        if self._problems:
            raise CohortError(first_few([self._problems[name] for name in self.names if name in self._problems]))
        features = tuple(self._features[name] for name in self.names)
        used = [number for number, feature in enumerate(features) if feature.used]
        if not used:
            raise CohortError(
                "No feature is left to use: every other column is constant, empty, an identifier or ignored."
                + self._why_unused()
            )
        x = self._x if len(used) == len(features) else self._x[:, used]
        x.flags.writeable = False
        return features, x

    def _why_unused(self) -> str:
        """Each column that was left out without having been stated to be ignored, and what can be done about it."""
        told = {name: note.written for name in self.names for note in self.notes.get(name, ()) if note.kind == "unused"}
        if not told:
            return ""
        shown = first_few([f"Column '{name}' {reason}." for name, reason in told.items()])
        guessed = any(reason.startswith("looks like") for reason in told.values())
        remedy = (
            " If one that looks like an identifier is a measurement, state its kind in the schema." if guessed else ""
        )
        return f"\n{shown}{remedy}"


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


def check_columns(table: Table, stated: Overrides) -> None:
    """Refuses, by name, what is stated of columns that the table does not have."""
    name = stated.outcome["name"]
    if name not in table.names:
        headless = are_numbers(table.names)
        hint = " The first row looks like data: is the header row missing?" if headless else ""
        raise CohortError(f"There is no column '{name}' for the outcome.{_why_none(name, table)}{hint}")
    if name in table.repeated:
        raise CohortError(f"Several columns are called '{name}', the outcome. Rename or remove all but one.")
    for feature, settings in stated.features.items():
        if feature == name:
            raise SchemaError(f"'{feature}' is the outcome, so it cannot be a feature as well.")
        if feature not in table.names and settings.get("role") != "ignored":
            raise SchemaError(f"There is no column '{feature}'.{_why_none(feature, table)}")


def _why_none(name, table) -> str:
    """What there is instead; or why a column that stands in the file makes none."""
    if name not in table.left_out:
        return did_you_mean(name, table.names)
    return (
        f" '{name}' was left out, as it differs between rows of a patient or cannot be read. "
        "Give all rows of a patient the same there."
    )

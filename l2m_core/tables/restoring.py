"""A stored cohort opens as it was when it was stored. Warnings say where its file would be read otherwise today."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from l2m_core.tables.result_signs import is_minus, is_plus
from l2m_core.tables.table import READING, NumberColumn, Table, TextColumn

if TYPE_CHECKING:
    from l2m_core.cohort import Cohort
    from l2m_core.schema import Schema

READ_BY = "l2m reading"  # a stored frame's attribute; a frame without it was stored before there was one
READ_AS = "l2m rules"  # likewise: `ReadingRules.stated` of its file, where they are not the usual ones
# Likewise: columns whose cells told a decimal comma. Of others a stored cohort takes either sign where one reading is possible.
OF_COMMAS = "l2m decimal commas"
AGAIN = "This cohort stays as it was stored; upload its file again to have it read anew."


def understood(table: Table, schema: Schema) -> Table:
    """The same table, where texts of what the schema uses are levels as they stand. What it ignores was never understood."""
    used = {*schema.used, schema.outcome.name}
    columns = (
        replace(column, understood=True) if isinstance(column, TextColumn) and name in used else column
        for name, column in zip(table.names, table.columns, strict=True)
    )
    return replace(table, columns=tuple(columns))


def newer_readings(cohort: Cohort) -> Iterator[str]:
    """Columns that earlier versions may have read otherwise than this one reads their file."""
    assert cohort.source is not None
    if cohort.source.reading == READING:
        return
    outcome = cohort.schema.outcome
    levels = {feature.name: (feature.kind, feature.levels) for feature in cohort.features}
    levels[outcome.name] = (outcome.kind, outcome.classes)
    for name, (kind, texts) in levels.items():
        column = cohort.source.column(name)
        if any(map(is_plus, texts)) and not any(map(is_minus, texts)) and _has_holes(cohort, name):
            yield (
                f"Column '{name}' holds '{next(filter(is_plus, texts))}' and cells that are not recorded. If these were '-' in "
                f"its file, an earlier version took them for not recorded; they are results now. {AGAIN}"
            )
        if kind == "category" and isinstance(column, NumberColumn) and _are_unlike_counts(column.values):
            yield (
                f"Column '{name}' is a category that was read as numbers, so that codes such as 250.1 and 250.10 were one "
                f"level; they are two now. {AGAIN}"
            )


def _has_holes(cohort: Cohort, name: str) -> bool:
    return name in cohort.names and not bool(cohort.r[:, cohort.names.index(name)].all())


def _are_unlike_counts(values: np.ndarray) -> bool:
    """Numbers that more than one text may have been: with decimals, or beyond what a float can tell apart."""
    present = values[~np.isnan(values)]
    return bool(np.any((present != np.round(present)) | (np.abs(present) >= 2**53)))

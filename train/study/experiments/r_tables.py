"""Tables that R packages bring, of patients for the most part, as CSV files of the public collection Rdatasets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.settings import build_settings, read_settings

FILE = Path(__file__).with_suffix(".yaml")
FOLDER = Path("Rdatasets", "csv")
"""Within a folder of data: what `git clone https://github.com/vincentarelbundock/Rdatasets` makes there."""


@dataclass(frozen=True)
class RTable:
    """Which file a table is, and which of its columns are asked for and about."""

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

    @property
    def path(self) -> Path:
        return FOLDER / self.package / f"{self.item}.csv"

    @property
    def columns(self) -> list[str]:
        """All that are read."""
        return [*self.baseline, *self.tests, self.outcome, *self.rows]


@lru_cache(maxsize=1)
def r_tables() -> dict[str, RTable]:
    """By name."""
    return {name: build_settings(RTable, plain, name) for name, plain in read_settings(FILE).items()}


@lru_cache(maxsize=32)
def r_cohort(name: str, data: Path) -> Cohort:
    """data: the folder that holds FOLDER."""
    table = r_tables()[name]
    frame = _frame(data / table.path, table)
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


def _frame(path: Path, table: RTable) -> pd.DataFrame:
    try:
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise CohortError(f"{path.name} cannot be read as a CSV ({error}). Get it from Rdatasets again.") from error
    absent = [name for name in table.columns if name not in frame]
    if absent:
        raise CohortError(
            f"{path.name} is not the table {table.item!r} of R's package {table.package}: it lacks {absent[0]!r}. "
            "Get it from Rdatasets again."
        )
    return frame

"""What a cohort's file holds and how its cells are read, as options of a command or settings of a job: the words of Python."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from l2m_core.tables.column_reading import CENSORED_RULES, UNIT_RULES
from l2m_core.tables.measurements import WHICH


@dataclass(frozen=True)
class ReadingOptions:
    """How a cohort's file is read, as a command or a job was told; the names are those of `Cohort.from_file`."""

    sheet: str | None = None
    """The sheet that is read, of an Excel workbook that has several."""
    measurements: str | None = None
    """"first" or "last": the result that is taken of each test, in a table with a row for each measurement."""
    decimal: str | None = None
    """The decimal sign, "." or ",", where the cells do not tell it."""
    missing: tuple[str, ...] = ()
    """Further texts that mean not measured, such as k.A."""
    censored: str = CENSORED_RULES[0]
    """"refuse" cells such as <5, or take the "limit"."""
    units: str = UNIT_RULES[0]
    """"refuse" cells such as '5 mg/L', or "drop" the unit where a column has one."""

    def keywords(self) -> dict[str, Any]:
        """What `Cohort.from_file` takes."""
        return {option.name: getattr(self, option.name) for option in fields(self)}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--outcome", help="the column to predict; not needed when the schema names it")
    parser.add_argument("--baseline", nargs="*", default=[], help="columns known from the start")
    parser.add_argument("--schema", type=Path, help="YAML schema of the cohort")
    parser.add_argument("--sheet", help="the sheet that is read, of an Excel workbook that has several")
    parser.add_argument(
        "--measurements",
        choices=WHICH,
        help="make a row for each patient of a table with a row for each measurement, with the first or last result of each test",
    )
    parser.add_argument(
        "--decimal", choices=(".", ","), help="decimal sign of the cohort, where its cells do not tell it"
    )
    parser.add_argument(
        "--missing", nargs="*", default=[], metavar="TEXT", help="further texts that mean not measured, such as k.A."
    )
    parser.add_argument(
        "--censored",
        choices=CENSORED_RULES,
        default=CENSORED_RULES[0],
        help="cells such as <5: refuse them, or take the limit (default: %(default)s)",
    )
    parser.add_argument(
        "--units",
        choices=UNIT_RULES,
        default=UNIT_RULES[0],
        help="cells such as '5 mg/L': refuse them, or drop the unit where a column has one (default: %(default)s)",
    )


def chosen(given: argparse.Namespace) -> ReadingOptions:
    """From the arguments of a command that has the options of `add_options`."""
    return ReadingOptions(
        given.sheet, given.measurements, given.decimal, tuple(given.missing), given.censored, given.units
    )

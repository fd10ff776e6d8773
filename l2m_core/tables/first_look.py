"""A first look at a table, before anything is stored: what each column holds, and what it probably is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from l2m_core.schema import Overrides
from l2m_core.tables.code_guesses import seem_codes
from l2m_core.tables.column_parsing import read_columns
from l2m_core.tables.column_reading import DEFAULT_RULES, Reading, ReadingRules
from l2m_core.tables.column_summaries import ColumnSummary, summarise_column
from l2m_core.tables.feature_inference import feature_kind
from l2m_core.tables.role_guesses import RoleGuess, guess_role
from l2m_core.tables.stated_settings import how_to_read, levels_of
from l2m_core.tables.table import Table
from l2m_core.tables.unit_guesses import guess_unit


@dataclass(frozen=True)
class ColumnLook:
    """unit: empty where nothing tells it; perhaps_missing: texts that may mean "not recorded", which nobody has said;
    seems_codes: whether its numbers are probably codes, and nobody has said of what kind they are."""

    summary: ColumnSummary
    guess: RoleGuess
    unit: str
    perhaps_missing: tuple[str, ...] = ()
    seems_codes: bool = False

    @property
    def is_empty_of_news(self) -> bool:
        """Whether no role would make the column of use: it is empty, or holds one and the same value."""
        return self.summary.problem is None and self.summary.distinct < 2


FirstLook = Mapping[str, ColumnLook]


def first_look(table: Table, stated: Overrides, rules: ReadingRules = DEFAULT_RULES) -> FirstLook:
    """Column → what it holds, for all but the outcome. stated.outcome needs a name; of the features, kinds and levels
    that are stated count."""
    outcome = stated.outcome["name"]
    columns = {name: column for name, column in zip(table.names, table.columns, strict=True) if name != outcome}
    kinds = {name: how_to_read(settings) for name, settings in stated.features.items()}
    readings = read_columns(columns, columns.values(), table.row_numbers, kinds, rules, levels_of(stated))
    return {name: _look(reading, stated.features.get(name, {}).get("kind"), outcome) for name, reading in readings}


def _look(reading: Reading, stated_kind: str | None, outcome: str) -> ColumnLook:
    kind = stated_kind or ("number" if reading.problem is not None else feature_kind(reading))
    unit = ""
    if reading.numbers is not None and kind == "number":
        unit = reading.unit or guess_unit(reading.name, reading.numbers)
    guess = guess_role(reading, outcome)
    seems_codes = stated_kind is None and guess.role != "ignored" and seem_codes(reading)
    return ColumnLook(summarise_column(reading, kind), guess, unit, reading.perhaps_missing, seems_codes)

"""What is stated of each column as a grid: for what is needed rarely, and for everything where rows cannot be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from l2m_core.schema import FEATURE_KINDS, ROLES, Feature

TEXTS = ("unit", "group", "description", "code")
LIMITS = ("minimum", "maximum", "reference_low", "reference_high")
NUMBERS = ("cost", "turnaround", *LIMITS)
IN_ROWS = ("role", "kind", "unit")  # what the rows of columns show; the grid has it only where there are no rows
COLUMNS = ("name", *IN_ROWS, "cost", "turnaround", "group", *LIMITS, "description", "code")
NARROWEST, WIDEST = 80, 280  # pixels of a column that is as wide as its texts
DEFAULTS = Feature("default")


def table_of(names: Sequence[str], settings: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each column, with what is stated of it, else with the defaults."""
    rows = [[name, *(_shown(settings.get(name, {}), column) for column in COLUMNS[1:])] for name in names]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    for column in NUMBERS:
        table[column] = table[column].astype("float64")
    for column in TEXTS:
        table[column] = table[column].fillna("").astype(str)
    return table


def _shown(stated: Mapping[str, Any], column: str) -> Any:
    return stated.get(column, None if column == "kind" else getattr(DEFAULTS, column))


def edit(table: pd.DataFrame, key: str, with_roles: bool) -> None:
    """The editor. Limits given here help while typing; the core checks everything again."""
    number = st.column_config.NumberColumn
    st.data_editor(
        table,
        key=key,
        hide_index=True,
        width="stretch",
        alt="Schema: one row for each feature, editable",
        height=min(620, 38 + 35 * max(len(table), 1)),
        column_order=[column for column in COLUMNS if with_roles or column not in IN_ROWS],
        column_config={
            "name": st.column_config.TextColumn("feature", disabled=True, pinned=True, width="medium"),
            "role": st.column_config.SelectboxColumn(
                options=list(ROLES),
                required=True,
                help="baseline: known from the start · acquirable: can be measured · ignored: not used",
            ),
            "kind": st.column_config.SelectboxColumn(
                options=list(FEATURE_KINDS), help="Empty: detected from the values"
            ),
            "unit": st.column_config.TextColumn(help="As it stands in results, best a UCUM code"),
            "cost": number(
                min_value=0.0,
                help="In any unit, the same for all features; a panel is paid once, at the dearest of its costs",
            ),
            "turnaround": number("turnaround (min)", min_value=0.0),
            "group": st.column_config.TextColumn(
                "panel", width=width_of(table["group"]), help="Features with the same panel are measured together"
            ),
            "minimum": number("minimum allowed", help="A value below is refused"),
            "maximum": number("maximum allowed", help="A value above is refused"),
            "reference_low": number("reference low", help="Shown, never enforced"),
            "reference_high": number("reference high", help="Shown, never enforced"),
            "description": st.column_config.TextColumn(width="large"),
            "code": st.column_config.TextColumn(
                "LOINC code", help="By which results from other systems are recognised, such as 2524-7"
            ),
        },
    )


def width_of(texts: pd.Series) -> int:
    """Pixels that show the longest text in full, within limits."""
    longest = max((len(str(text)) for text in texts), default=0)
    return min(WIDEST, max(NARROWEST, 8 * longest + 24))


def edits(key: str) -> dict[int, dict[str, Any]]:
    """Row → its changed cells, also those that no page run has seen yet; None where a cell was emptied."""
    found = st.session_state.get(key, {}).get("edited_rows", {})
    return {
        int(row): {column: value for column, value in changes.items() if column in COLUMNS and column != "name"}
        for row, changes in found.items()
    }


def stated(settings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As the core reads them: what is empty is left to be inferred."""
    return [
        {"name": name, **{key: value for key, value in said.items() if not _is_empty(value)}}
        for name, said in settings.items()
    ]


def _is_empty(value: Any) -> bool:
    return value is None or value is pd.NA or value != value or (isinstance(value, str | tuple) and not value)

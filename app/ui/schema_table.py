"""A schema as an editable table, and the table as schema settings."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from l2m_core.schema import FEATURE_KINDS, ROLES, Feature, Outcome, Schema

TEXTS = ("unit", "group", "description")
NUMBERS = ("cost", "turnaround", "minimum", "maximum", "reference_low", "reference_high")
COLUMNS = (
    "name",
    "role",
    "kind",
    "unit",
    "cost",
    "turnaround",
    "group",
    "minimum",
    "maximum",
    "reference_low",
    "reference_high",
    "description",
)
NARROWEST, WIDEST = 80, 280  # pixels of a column that is as wide as its texts


def table_of(schema: Schema | None, names: tuple[str, ...] = ()) -> pd.DataFrame:
    """One row for each feature; without a schema, only the names of the columns."""
    features = schema.features if schema else [Feature(name) for name in names]
    rows = [[getattr(feature, column) for column in COLUMNS] for feature in features]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    for column in NUMBERS:
        table[column] = table[column].astype("float64")
    for column in TEXTS:
        table[column] = table[column].fillna("").astype(str)
    if schema is None:
        table["kind"] = None
    return table


def table_of_settings(names: tuple[str, ...], features: list[dict[str, Any]]) -> pd.DataFrame:
    """The settings stated for each column, where no valid schema can be made of them yet."""
    said = {settings["name"]: settings for settings in features}
    table = table_of(None, names)
    for column in COLUMNS[1:]:
        values = [said.get(name, {}).get(column, default) for name, default in zip(names, table[column], strict=True)]
        table[column] = pd.Series(values, dtype=table[column].dtype, index=table.index)
    return table


def edit(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """The editor. Limits given here help while typing; the core checks everything again."""
    number = st.column_config.NumberColumn
    return st.data_editor(
        table,
        key=key,
        hide_index=True,
        width="stretch",
        alt="Schema: one row for each feature, editable",
        height=min(620, 38 + 35 * max(len(table), 1)),
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
            "minimum": number("lowest allowed", help="A value below is refused"),
            "maximum": number("highest allowed", help="A value above is refused"),
            "reference_low": number("reference from", help="Shown, never enforced"),
            "reference_high": number("reference to", help="Shown, never enforced"),
            "description": st.column_config.TextColumn(width="large"),
        },
    )


def width_of(texts: pd.Series) -> int:
    """Pixels that show the longest text in full, within limits."""
    longest = max((len(str(text)) for text in texts), default=0)
    return min(WIDEST, max(NARROWEST, 8 * longest + 24))


def edited(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """For callbacks: the table with all edits in the editor, also those that no page run has seen yet."""
    changed = table.copy()
    for row, changes in st.session_state.get(key, {}).get("edited_rows", {}).items():
        for column, value in changes.items():
            if column in COLUMNS and column != "name" and 0 <= int(row) < len(changed):
                changed[column] = changed[column].astype(object)
                changed.loc[changed.index[int(row)], column] = value
    return changed


def stated(table: pd.DataFrame, outcome: Outcome | dict[str, Any], before: Schema | None) -> dict[str, Any]:
    """The table as settings for the core; empty cells are left to be inferred."""
    earlier = {feature.name: feature for feature in before.features} if before else {}
    features = []
    for row in table.to_dict("records"):
        settings = {name: value for name, value in row.items() if not _is_empty(value)}
        known = earlier.get(str(row["name"]))
        if known is not None and known.levels and known.kind == settings.get("kind"):
            settings["levels"] = list(known.levels)
        features.append(settings)
    return {"outcome": _outcome(outcome), "features": features}


def _outcome(outcome: Outcome | dict[str, Any]) -> dict[str, Any]:
    if isinstance(outcome, dict):
        return outcome
    settings = {"name": outcome.name, "kind": outcome.kind, "unit": outcome.unit, "description": outcome.description}
    return {**{k: v for k, v in settings.items() if v}, **({"classes": outcome.classes} if outcome.classes else {})}


def _is_empty(value: Any) -> bool:
    return value is None or value is pd.NA or value != value or (isinstance(value, str) and not value.strip())

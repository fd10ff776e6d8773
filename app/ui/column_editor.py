"""The columns of a cohort, each as a row that says what it holds and what it is; any of it changed by one press."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.streamlit_contact import column_rows
from app.ui import labels, schema_table
from l2m_core.schema import FEATURE_KINDS
from l2m_core.tables import code_guesses
from l2m_core.tables.first_look import ColumnLook, FirstLook
from l2m_core.tables.role_guesses import RoleGuess

Settings = Mapping[str, Mapping[str, Any]]  # column → what is stated of it


@dataclass(frozen=True)
class Editors:
    """The keys of the two editors of one set of columns: the rows, and the grid of what is needed more rarely."""

    rows: str
    grid: str

    def edited(self, names: Sequence[str], settings: Settings) -> dict[str, dict[str, Any]]:
        """The settings with all changes made in either, also those that no page run has seen yet."""
        changed = {name: dict(settings.get(name, {})) for name in names}
        in_rows = column_rows.edits(self.rows)
        for number, name in enumerate(names):
            for changes in (schema_table.edits(self.grid).get(number, {}), in_rows.get(str(number), {})):
                _change(changed[name], changes)
        return changed


def _change(settings: dict[str, Any], changes: Mapping[str, Any]) -> None:
    kind = changes.get("kind", settings.get("kind"))
    if kind != settings.get("kind"):
        settings.pop("levels", None)
        if kind != "number":
            for limit in schema_table.LIMITS:
                settings.pop(limit, None)
    settings.update(changes)


def show(
    names: Sequence[str],
    look: FirstLook,
    settings: Settings,
    guesses: Mapping[str, RoleGuess],
    key: str,
) -> bool:
    """Whether the rows could be drawn. settings: as edited, with the role of every column."""
    rows = [_row(number, look[name], settings[name], guesses[name]) for number, name in enumerate(names)]
    return column_rows.show(rows, key)


def _row(number: int, look: ColumnLook, settings: Mapping[str, Any], guess: RoleGuess) -> dict[str, Any]:
    summary = look.summary
    shown = summary.examples if summary.kind == "number" or summary.distinct > len(summary.examples) else ()
    doubt = summary.problem or (f"{code_guesses.ADVICE}." if look.seems_codes else "")
    examples = ", ".join(labels.short(text, 24) for text in shown)
    nothing = "not read" if summary.problem else "empty"  # of a refused column nothing is counted
    return {
        "id": str(number),
        "name": labels.plain(summary.name),
        "role": settings["role"],
        "guess": guess.role,
        "reason": guess.reason,
        "look": not guess.is_sure or (bool(doubt) and guess.role != "ignored"),
        "fixed": look.is_empty_of_news,
        "kind": settings.get("kind") or summary.kind,
        "kinds": [kind for kind in FEATURE_KINDS if kind != "binary" or summary.distinct == 2],
        "unit": settings.get("unit") or "",
        "recorded": nothing if not summary.distinct else f"{labels.percent(summary.recorded)} recorded",
        "spread": "" if summary.problem else labels.short(summary.spread, 60),
        "examples": f"such as {examples}" if examples else "",
        "bars": list(summary.bars),
        "chart": f"Distribution of {labels.plain(summary.name)}: {labels.plain(summary.spread) or nothing}",
        "problem": labels.plain(doubt),
    }

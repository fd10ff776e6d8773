"""From an uploaded table, and what a person stated about it, to a cohort.

A `Draft` holds what was stated. Each step from it to the cohort is cached by what it is made from, since a page asks for all
of them at every run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from app.host import services
from app.ui import column_editor, schema_table
from app.ui.column_editor import Editors
from l2m_core.cohort import Cohort
from l2m_core.diagnostics import Diagnostics
from l2m_core.errors import CohortError, L2MError
from l2m_core.schema import Overrides
from l2m_core.tables.column_reading import ReadingRules
from l2m_core.tables.first_look import FirstLook, first_look
from l2m_core.tables.role_guesses import GIVES_AWAY, RoleGuess, gives_away
from l2m_core.tables.table import Table

Draft = dict[str, Any]
SEPARATOR = ","  # of codes for "not measured", as a person writes them


def editors_of(draft: Draft) -> Editors:
    _, hashed, *turned = draft["key"]
    name = "-".join([hashed[:12], *turned, str(draft["round"])])
    return Editors(f"draft-rows-{name}", f"draft-editor-{name}")


def feature_names(table: Table, draft: Draft) -> tuple[str, ...]:
    return tuple(name for name in table.names if name != draft["outcome"])


def edited(table: Table, draft: Draft) -> dict[str, dict[str, Any]]:
    """What was stated of each column so far. Columns of a YAML file that the table lacks stay, to be refused by name."""
    names = feature_names(table, draft)
    others = {name: said for name, said in draft["features"].items() if name not in table.names}
    return {**editors_of(draft).edited(names, draft["features"]), **others}


def look_at(table: Table, draft: Draft) -> FirstLook:
    """The first look at the table, made anew only where kinds, levels or the reading of cells change."""
    settings = edited(table, draft)
    kinds = [{"name": name, **_of_reading(said)} for name, said in settings.items() if name in table.names]
    stated = Overrides.from_data({"outcome": _outcome(draft), "features": kinds})
    key = (*draft["key"], json.dumps(kinds, sort_keys=True, default=str), json.dumps(_outcome(draft)), *_how(draft))
    return services.get().first_look(key, lambda: first_look(table, stated, ReadingRules(**_rules(draft))))


def _of_reading(said: Mapping[str, Any]) -> dict[str, Any]:
    """Of a column's settings those that its cells are read by."""
    return {key: said[key] for key in ("kind", "levels") if said.get(key)}


def guess_roles(look: FirstLook, diagnostics: Diagnostics | None) -> dict[str, RoleGuess]:
    explained = {} if diagnostics is None else diagnostics.features["explained"].to_dict()
    leaks = {name: gives_away(share) for name, share in explained.items() if share >= GIVES_AWAY}
    return {name: leaks.get(name, found.guess) for name, found in look.items()}


def completed(
    look: FirstLook, guesses: Mapping[str, RoleGuess], settings: column_editor.Settings
) -> dict[str, dict[str, Any]]:
    """What was stated, and the guesses where nothing was."""
    settled = {}
    for name, found in look.items():
        said = {"unit": found.unit, **settings.get(name, {})}
        said["role"] = said.get("role") or guesses[name].role
        if found.guess.role == "ignored" and said["role"] != "ignored":
            said.setdefault("kind", found.summary.kind)  # or it would be left out again
        settled[name] = said
    return settled


def read_cohort(
    table: Table, draft: Draft, look: FirstLook, settings: column_editor.Settings
) -> tuple[Cohort | None, str | None]:
    """The cohort as its cells are read, whatever the roles, or why it cannot be read. What cannot be used as it stands is
    left out where the guess or a person says so."""
    features = []
    for name, found in look.items():
        said = settings.get(name, {})
        role = said.get("role") or found.guess.role
        left_out = found.summary.problem is not None and role == "ignored"
        features.append({"name": name, **({"role": "ignored"} if left_out else _of_reading(said))})
    return _build(table, draft, features)


def _build(table: Table, draft: Draft, features: list[dict[str, Any]]) -> tuple[Cohort | None, str | None]:
    """Cohorts are cached by what they are made from."""
    plain = {"outcome": _outcome(draft), "features": features}
    key = (*draft["key"], json.dumps(plain, sort_keys=True, default=str), draft["positive"], *_how(draft))

    def make() -> Cohort:
        return Cohort.from_table(table, schema=plain, positive=draft["positive"], **_rules(draft))

    try:
        return services.get().built(key, make), None
    except L2MError as refusal:
        if draft["positive"] is not None and "positive is" in str(refusal):
            return _build(table, {**draft, "positive": None}, features)
        return None, str(refusal)


def perhaps_missing(look: FirstLook, settled: column_editor.Settings) -> dict[str, list[str]]:
    """Text that may mean "not measured" → the columns that are used and hold it."""
    found: dict[str, list[str]] = {}
    for name, column in look.items():
        for text in column.perhaps_missing if settled[name]["role"] != "ignored" else ():
            found.setdefault(text, []).append(name)
    return {text: names for text, names in found.items() if SEPARATOR not in text}


def with_missing(codes: str, text: str) -> str:
    """Codes for "not measured", as a person writes them, and one more."""
    return f"{codes.strip().rstrip(SEPARATOR)}{SEPARATOR} {text}" if codes.strip() else text


def _outcome(draft: Draft) -> dict[str, Any]:
    stated = draft["of_outcome"]
    if draft["kind"]:  # classes that a YAML file states may be of another kind
        stated = {"kind": draft["kind"], **{key: stated[key] for key in ("unit", "description") if stated.get(key)}}
    return {**stated, "name": draft["outcome"]}


def _rules(draft: Draft) -> dict[str, Any]:
    missing = tuple(text.strip() for text in draft["missing"].split(SEPARATOR) if text.strip())
    return {"decimal": draft["decimal"], "missing": missing, "censored": draft["censored"], "units": draft["units"]}


def _how(draft: Draft) -> tuple[str | None, ...]:
    return draft["missing"], draft["decimal"], draft["censored"], draft["units"]


def completed_cohort(table: Table, draft: Draft) -> Cohort | None:
    """The cohort with what was stated and, where nothing was, with the guesses; None where its cells cannot be read."""
    look, settings = look_at(table, draft), edited(table, draft)
    read, _ = read_cohort(table, draft, look, settings)
    if read is None:
        return None
    guesses = guess_roles(look, services.get().diagnostics(read))
    others = {name: said for name, said in settings.items() if name not in look}
    features = schema_table.stated({**completed(look, guesses, settings), **others})
    cohort, refusal = _build(table, draft, features)
    if cohort is None:
        raise CohortError(str(refusal))
    return cohort

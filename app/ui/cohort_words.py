"""A cohort that is about to be saved, in one sentence, and what about it looks wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.ui import labels
from l2m_core.diagnostics import Diagnostics
from l2m_core.schema import Outcome
from l2m_core.step_through.words import as_sentence
from l2m_core.tables.code_guesses import ADVICE
from l2m_core.tables.role_guesses import RoleGuess

NEARLY_ALL = 0.9  # of the rows have the positive class: then perhaps the other one is meant
MOST_NAMES = 4
CHOSEN = "your choice"  # as the rows of the columns say it: app/streamlit_contact/column_rows


def sentence(roles: Mapping[str, str], outcome: Outcome, diagnostics: Diagnostics) -> str:
    """'11 known at the start, 15 can be measured, 2 ignored; outcome died, 26% yes'."""
    counts = {role: list(roles.values()).count(role) for role in ("baseline", "acquirable", "ignored")}
    return (
        f"{counts['baseline']} known at the start, {counts['acquirable']} can be measured, {counts['ignored']} ignored; "
        f"outcome {labels.plain(outcome.name)}, {_outcome(outcome, diagnostics)}"
    )


def _outcome(outcome: Outcome, diagnostics: Diagnostics) -> str:
    if diagnostics.outcome_range:
        low, middle, high = (labels.number(value) for value in diagnostics.outcome_range)
        return f"median {middle}, from {low} to {high}"
    if outcome.kind == "binary":
        positive = labels.plain(outcome.classes[1])
        are = "" if positive[:1].isalpha() else "are "
        return f"{labels.percent(diagnostics.prevalence[outcome.classes[1]])} {are}{positive}"
    commonest = max(diagnostics.prevalence, key=lambda name: diagnostics.prevalence[name])
    share = labels.percent(diagnostics.prevalence[commonest])
    return f"{len(outcome.classes)} classes, most often {labels.plain(commonest)} ({share})"


def questions(
    roles: Mapping[str, str],
    guesses: Mapping[str, RoleGuess],
    decided: Mapping[str, object],
    outcome: Outcome,
    diagnostics: Diagnostics,
    seem_codes: Sequence[str] = (),
) -> list[str]:
    """What a person should look at before saving. decided: the columns whose role a person has stated; seem_codes: columns of
    numbers that are probably codes."""
    found = []
    used = [role for role in roles.values() if role != "ignored"]
    if "baseline" not in used:
        found.append("Nothing is known at the start. Is there no age, sex or history among the columns?")
    if "acquirable" not in used:
        found.append("Nothing can be measured, so no test could be suggested. Which columns are tests?")
    open_guesses = {name: guess for name, guess in guesses.items() if name not in decided}
    for guess_role, words in (("ignored", "left out"), ("baseline", "known at the start"), ("acquirable", "measured")):
        unsure = [name for name, g in open_guesses.items() if not g.is_sure and g.role == guess_role]
        if unsure:
            whether = "Is it" if len(unsure) == 1 else "Are they"
            found.append(f"{_listed(unsure)}: {whether} rightly {words}? {_reason(open_guesses, unsure)}")
    used_codes = [name for name in seem_codes if roles.get(name) != "ignored"]
    if used_codes:
        found.append(f"{_listed(used_codes)}: {ADVICE} beside the column.")
    if outcome.kind == "binary" and diagnostics.prevalence[outcome.classes[1]] > NEARLY_ALL:
        found.append(f"Nearly all rows are '{labels.plain(outcome.classes[1])}'. Is that the class to predict?")
    return found


def unused(roles: Mapping[str, str], guesses: Mapping[str, RoleGuess]) -> list[str]:
    """The columns that are not used, those with the same reason together: 'seen on: a date or a time, …'."""
    columns: dict[str, list[str]] = {}
    for name, role in roles.items():
        if role == "ignored":
            reason = guesses[name].reason if guesses[name].role == "ignored" else CHOSEN
            columns.setdefault(reason, []).append(name)
    return [f"{_listed(names)}: {reason}." for reason, names in columns.items()]


def _reason(guesses: Mapping[str, RoleGuess], names: list[str]) -> str:
    reasons = {guesses[name].reason for name in names}
    text = reasons.pop() if len(reasons) == 1 else "Their reasons stand beside them."
    return as_sentence(text.removesuffix(".")) + "."


def _listed(names: list[str]) -> str:
    shown = ", ".join(labels.short(name) for name in names[:MOST_NAMES])
    return f"{shown} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else shown

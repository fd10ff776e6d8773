"""Events and values in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.ui import labels
from l2m_core.cohort import Cohort
from l2m_core.schema import Feature, Schema
from l2m_core.step_through.events import Event

KIND_WORDS = {
    "start": "Began",
    "observe": "Recorded",
    "unavailable": "Not available",
    "declined": "Declined",
    "pending": "Pending",
    "correct": "Corrected",
    "undo": "Undid the step before",
    "stop": "Stopped",
    "reopen": "Reopened",
}
KIND_SIGNS = {
    "unavailable": "✕",
    "declined": "–",
    "pending": "…",
    "correct": "✎",
    "stop": "stopped",
    "reopen": "reopened",
    "undo": "undone",
}
LIMIT_SIGNS = {"below": "<", "above": ">"}


def value(cohort: Cohort | Schema, name: str, entered: Any, limit: str | None = None) -> str:
    """A value as it was entered, with its sign and unit."""
    feature = cohort.feature(name)
    text = labels.entered_text(entered) if isinstance(entered, float) else labels.plain(entered)
    return labels.with_unit(LIMIT_SIGNS.get(limit or "", "") + text, feature.unit)


def reference_text(feature: Feature) -> str:
    low, high = feature.reference_low, feature.reference_high
    if low is not None and high is not None:
        return labels.with_unit(labels.span(labels.entered_text(low), labels.entered_text(high)), feature.unit)
    if low is not None:
        return labels.with_unit(f"from {labels.entered_text(low)}", feature.unit)
    return labels.with_unit(f"up to {labels.entered_text(high)}", feature.unit) if high is not None else ""


def reference_flag(feature: Feature, value: Any) -> str:
    """'▲ high', '▼ low' or ''."""
    if feature.kind != "number" or not isinstance(value, int | float):
        return ""
    if feature.reference_high is not None and value > feature.reference_high:
        return "▲ high"
    return "▼ low" if feature.reference_low is not None and value < feature.reference_low else ""


def value_with_flag(cohort: Cohort | Schema, name: str, entered: Any, limit: str | None) -> str:
    """As markdown: the value, and whether it lies outside its reference range."""
    text = labels.markdown(value(cohort, name, entered, limit))
    flag = reference_flag(cohort.feature(name), entered)
    return f"**{text}**{f' :orange[{flag}]' if flag else ''}"


def learned(event: Event) -> str:
    """The features of an event in few words, for an axis."""
    if event.kind == "start":
        return "start"
    about = ", ".join(labels.plain(name) for name in event.about)
    if event.kind == "observe":
        return about
    return f"{KIND_SIGNS[event.kind]} {about}".strip()


def event(cohort: Cohort | Schema, done: Event) -> str:
    """One line of the log."""
    parts = [KIND_WORDS[done.kind]]
    known = cohort.names
    for name, entered in done.values.items():
        if entered is None:
            parts.append(f"{labels.plain(name)} taken back")
        elif name in known:
            parts.append(f"{labels.plain(name)} {value(cohort, name, entered, done.limits.get(name))}")
    parts += [labels.plain(name) for name in done.features]
    if done.suggested and done.kind == "observe" and done.suggested not in done.values:
        parts.append(f"instead of {labels.plain(done.suggested)}")
    if done.reason:
        parts.append(f"“{labels.plain(done.reason)}”")
    return " · ".join(parts)


def against_advice(count: int) -> str:
    """What follows a number of tests: ', 1 of them although the advice was to stop'; '' where none was."""
    return f", {count} of them although the advice was to stop" if count else ""


def panel(cohort: Cohort, name: str, closed: Mapping[str, str]) -> tuple[str, ...]:
    """The features that are measured together with this one and are not known yet, itself first."""
    group = cohort.feature(name).group
    together = [f.name for f in cohort.features if group is not None and f.group == group and f.role == "acquirable"]
    return (name, *(other for other in together if other != name and closed.get(other) != "known"))

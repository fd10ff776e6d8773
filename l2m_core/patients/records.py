"""What is known of a patient who comes from elsewhere, and what of it could not be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from l2m_core.cohort import Cohort
from l2m_core.errors import FeatureError
from l2m_core.schema import Feature, did_you_mean
from l2m_core.step_through.detection_limits import used_as_the_limit
from l2m_core.tables.cell_parsing import is_limit, without_limit_sign
from l2m_core.tables.entered_values import enter_quietly, unseen_words

LONGEST_SHOWN = 80  # characters of what is quoted
Kind = Literal["unknown", "not read", "value", "unit", "doubt"]


@dataclass(frozen=True)
class Unused:
    """Something that stood there and was not used. Nothing is guessed, so a person has to know of it."""

    what: str
    """A column, a name or a code, as it was written."""
    why: str
    """A sentence."""
    kind: Kind
    """unknown: the cohort has no such thing; not read: ignored by the schema, or the outcome; value: it does not fit the
    feature; unit: another one, or none; doubt: it could mean several things."""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True)
class PatientRecord:
    """One patient for one cohort: `memory.start(record.values, limits=record.limits)`."""

    label: str
    """Where it stood: 'row 2', 'patient 1'. Never a name or a record number."""
    values: Mapping[str, Any]
    """Feature → value, as a step-through records it."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """Feature → 'below' or 'above', where the value is a detection limit."""
    unused: tuple[Unused, ...] = ()
    notes: tuple[str, ...] = ()
    """What to know about values that were used."""


@dataclass(frozen=True)
class BroughtPatients:
    """All patients of one text or file."""

    form: Literal["table", "results", "JSON", "FHIR"]
    patients: tuple[PatientRecord, ...]
    notes: tuple[str, ...] = ()
    """What concerns the file as a whole."""


class RecordMaker:
    """Collects the values of one patient, each read as the cohort's own cells were."""

    def __init__(self, cohort: Cohort, label: str) -> None:
        self.cohort, self.label = cohort, label
        self.values: dict[str, Any] = {}
        self.limits: dict[str, str] = {}
        self.unused: list[Unused] = []
        self.notes: list[str] = []

    def leave(self, what: str, why: str, kind: Kind) -> None:
        self.unused.append(Unused(shown(what), why, kind))

    def take(self, name: str, value: Any, limit: str | None = None) -> None:
        """A value under a feature's name. limit: 'below' or 'above', where that is said apart from the value."""
        if name not in self.cohort.names:
            self.leave(name, *why_not_read(self.cohort, name))
            return
        feature = self.cohort.feature(name)
        if limit is None and feature.kind == "number" and isinstance(value, str) and is_limit(value.strip()):
            limit = "below" if value.strip()[0] in "<≤" else "above"
            value = without_limit_sign(value.strip())
        try:
            entered, code = enter_quietly(feature, value, self.cohort.rules_of(name))
        except FeatureError as refusal:
            self.leave(name, str(refusal), "value")
            return
        if entered is None:
            return
        if feature.kind != "number" and code == len(feature.levels):
            self.notes.append(unseen_words(feature, [value]))
        elif feature.kind != "number" and isinstance(value, bool):
            entered = feature.levels[int(code)]  # "True" beside positive and negative would have to be guessed at
        self.values[name] = entered
        if limit is not None:
            self._take_limit(feature, limit)

    def _take_limit(self, feature: Feature, limit: str) -> None:
        if feature.kind == "number":
            self.limits[feature.name] = limit
            if said := used_as_the_limit(self.cohort, feature.name, self.values[feature.name], limit):
                self.notes.append(f"{shown(feature.name)} {said}")
            return
        del self.values[feature.name]
        self.leave(feature.name, "It is a detection limit, but the feature is no number.", "value")

    def done(self) -> PatientRecord:
        return PatientRecord(self.label, self.values, self.limits, tuple(self.unused), tuple(self.notes))


def why_not_read(cohort: Cohort, name: str) -> tuple[str, Kind]:
    """Why a name that no used feature has is passed over."""
    if name == cohort.schema.outcome.name:
        return "It is what is predicted, so it is not read.", "not read"
    if name in cohort.schema.names:
        return "The cohort's schema ignores it.", "not read"
    return f"The cohort has no such feature.{did_you_mean(name, cohort.names)}", "unknown"


def shown(text: str) -> str:
    """A text of somebody else's on one line and of bounded length."""
    plain = " ".join(text.split())
    return plain if len(plain) <= LONGEST_SHOWN else f"{plain[: LONGEST_SHOWN - 1]}…"


def other_unit(written: str, feature: Feature) -> str:
    """Why a result in this unit, or without one, is not used."""
    ours = f"is in {feature.unit}" if feature.unit else "has no unit in the schema"
    theirs = f"in {shown(written)}" if written else "without a unit"
    return f"It is {theirs}, but '{feature.name}' {ours}. Nothing was converted."

"""What a request asks: about whom, by which model, and under which rules. Checked before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from app.catalogue import DEFAULT_MODEL
from l2m_core.acquire.stopping import Stopping
from l2m_core.answering.settings import MODEL_POLICIES
from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from l2m_core.patients import BroughtPatients, PatientRecord, from_plain, read_patients
from l2m_core.schema import did_you_mean
from l2m_core.step_through.strict_json import read_json

MOST_PATIENTS = 20  # asked about at once; each is a second's work on a busy machine
OPTIONS = ("model", "policy", "stopping", "unavailable")
SUBJECTS = ("patient", "patients", "bundle")
HINT = "The OpenAPI document at /openapi.json has an example."
MISFITS = ("unknown", "value", "doubt")
"""Kinds of what was not used that refuse a question whose sender wrote the features' own names."""


@dataclass(frozen=True)
class AnsweredBy:
    """By what a patient is answered for."""

    model: str = DEFAULT_MODEL
    policy: str | None = None
    stopping: Mapping[str, Any] = field(default_factory=dict)
    """What is stated of `Stopping`; null is no such limit."""
    unavailable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A JSON body before the cohort is known: its subject, which is not read yet, and its rules."""

    subject: Any
    is_bundle: bool
    rules: AnsweredBy

    def about(self, cohort: Cohort) -> BroughtPatients:
        if self.is_bundle and "resourceType" not in self.subject:
            raise InputError("This is not a FHIR Bundle: it has no resourceType.")
        found = from_plain(self.subject, cohort)
        if not self.is_bundle:
            _refuse_misfits(found.patients)
        return _bounded(found, cohort, self.rules)


@dataclass(frozen=True)
class AskedAsText:
    """A table."""

    body: bytes
    rules: AnsweredBy = AnsweredBy()

    def about(self, cohort: Cohort) -> BroughtPatients:
        return _bounded(read_patients(self.body, cohort), cohort, self.rules)


def question(body: bytes, content_type: str) -> Asked | AskedAsText:
    """content_type: of the request's header; other types than those of JSON, CSV and FHIR are a KeyError."""
    kind = content_type.partition(";")[0].strip().lower()
    readers: dict[str, Callable[[bytes], Asked | AskedAsText]]
    readers = {"application/json": from_json, "text/csv": AskedAsText, "application/fhir+json": from_fhir}
    return readers[kind](body)


def from_json(body: bytes) -> Asked:
    plain = read_object(body)
    for name in plain:
        if name not in (*SUBJECTS, *OPTIONS):
            raise InputError(f"The body has an unknown name '{name:.60}'.{did_you_mean(name, (*SUBJECTS, *OPTIONS))}")
    given = [name for name in SUBJECTS if name in plain]
    if len(given) != 1:
        raise InputError(f"The body must hold one of {', '.join(SUBJECTS)}. {HINT}")
    subject = plain[given[0]]
    expected = list if given[0] == "patients" else dict
    if not isinstance(subject, expected):
        raise InputError(f"'{given[0]}' must be {'a list of objects' if expected is list else 'an object'}. {HINT}")
    if given[0] != "bundle" and isinstance(subject, Mapping) and "resourceType" in subject:
        raise InputError(
            f"This is a FHIR resource. Give it as 'bundle', or with the type application/fhir+json. {HINT}"
        )
    return Asked(subject, given[0] == "bundle", _rules(plain))


def from_fhir(body: bytes) -> Asked:
    """A Bundle by itself."""
    return Asked(read_object(body), True, AnsweredBy())


def read_object(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("The body is not UTF-8 text.") from None
    plain = read_json(text, "The body", HINT, repeats=False)
    if not isinstance(plain, dict):
        raise InputError(f"The body must be a JSON object. {HINT}")
    return plain


def _rules(plain: Mapping[str, Any]) -> AnsweredBy:
    model, policy, unavailable = plain.get("model", DEFAULT_MODEL), plain.get("policy"), plain.get("unavailable", [])
    if not isinstance(model, str):
        raise InputError("'model' must be a model's name.")
    if policy is not None and policy not in MODEL_POLICIES:
        raise InputError(f"'policy' must be one of {', '.join(MODEL_POLICIES)}.")
    if not isinstance(unavailable, list) or not all(isinstance(name, str) for name in unavailable):
        raise InputError("'unavailable' must be a list of features' names.")
    return AnsweredBy(model, policy, _stopping(plain.get("stopping", {})), tuple(dict.fromkeys(unavailable)))


def _stopping(plain: Any) -> Mapping[str, Any]:
    known = [setting.name for setting in fields(Stopping)]
    if not isinstance(plain, Mapping):
        raise InputError(f"'stopping' must be an object with some of: {', '.join(known)}.")
    for name, value in plain.items():
        if name not in known:
            raise InputError(f"'stopping' has an unknown name '{name:.60}'.{did_you_mean(name, known)}")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(f"stopping.{name} must be a number.")
    Stopping(**plain)  # refuses what cannot be kept to
    return plain


def _bounded(found: BroughtPatients, cohort: Cohort, rules: AnsweredBy) -> BroughtPatients:
    if len(found.patients) > MOST_PATIENTS:
        raise InputError(
            f"There are {len(found.patients)} patients; at most {MOST_PATIENTS} are answered for at a time."
        )
    for name in rules.unavailable:
        cohort.feature(name)  # refuses a name that is none
    return found


def _refuse_misfits(patients: tuple[PatientRecord, ...]) -> None:
    found = [f"{record.label}, {left}" for record in patients for left in record.unused if left.kind in MISFITS]
    if found:
        more = f" And {len(found) - 5} more." if len(found) > 5 else ""
        raise InputError(f"These do not fit the cohort: {' '.join(found[:5])}{more}")

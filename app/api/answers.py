"""What the model makes of a patient, as plain data for other programs."""

from __future__ import annotations

import math
from typing import Any

from l2m_core.patients import PatientRecord
from l2m_core.schema import Feature, Schema
from l2m_core.step_through.candidates import Candidate
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.trace import summarise
from l2m_core.step_through.verdict import verdict


def answer_about(patient: Patient, record: PatientRecord) -> dict[str, Any]:
    if patient.suggestion is not None:
        patient.prefetch(patient.suggestion)  # what the verdict will ask, in one query with the rest
    said = verdict(patient)
    return {
        "label": record.label,
        "known": patient.known,
        "limits": dict(patient.state.limits),
        "belief": belief(patient),
        "ranking": [candidate(test, patient.memory.cohort.feature(test.feature)) for test in patient.tests],
        "verdict": {"action": said.action, "feature": said.feature, "sentence": said.sentence},
        "not_used": [{"what": left.what, "why": left.why, "kind": left.kind} for left in record.unused],
        "notes": list(record.notes),
    }


def belief(patient: Patient) -> dict[str, Any]:
    """Probabilities by class; of a continuous outcome mean, standard deviation and quantiles."""
    outcome = patient.memory.cohort.schema.outcome
    numbers = "quantiles" if outcome.kind == "continuous" else "probabilities"
    said: dict[str, Any] = {"outcome": outcome.name, "kind": outcome.kind, numbers: summarise(patient)}
    if outcome.kind == "binary":
        said["positive"] = outcome.classes[1]
    return said


def candidate(test: Candidate, feature: Feature) -> dict[str, Any]:
    return {
        "feature": test.feature,
        "code": feature.code,
        "status": test.status,
        "gain_nats": _finite(test.gain),
        "cost": test.cost,
        "gain_per_cost": _finite(test.gain_per_cost),
        "turnaround_minutes": test.turnaround,
        "panel": test.group,
        "recorded_in": test.support,
        "recorded_nearby": test.support_near,
    }


def described(schema: Schema) -> dict[str, Any]:
    """A schema, as far as whoever asks about patients needs it."""
    outcome = schema.outcome
    return {
        "outcome": {"name": outcome.name, "kind": outcome.kind, "classes": list(outcome.classes), "unit": outcome.unit},
        "features": [
            {
                "name": feature.name,
                "kind": feature.kind,
                "role": feature.role,
                "unit": feature.unit,
                "code": feature.code,
                "levels": list(feature.levels),
                "minimum": feature.minimum,
                "maximum": feature.maximum,
            }
            for feature in schema.features
            if feature.used
        ],
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None

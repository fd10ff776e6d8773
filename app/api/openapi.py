"""The OpenAPI 3.1 document of the HTTP face."""

from __future__ import annotations

from typing import Any

from app.api.bodies import LARGEST
from app.api.questions import MOST_PATIENTS
from l2m_core import __version__
from l2m_core.answering.settings import MODEL_POLICIES
from l2m_core.schema import FEATURE_KINDS, OUTCOME_KINDS
from l2m_core.step_through.words import RESEARCH_ONLY

Plain = dict[str, Any]
TEXT: Plain = {"type": "string"}
NUMBER: Plain = {"type": "number"}
MAYBE_NUMBER: Plain = {"type": ["number", "null"]}
WHOLE: Plain = {"type": "integer"}


def _object(properties: Plain, optional: tuple[str, ...] = (), **more: Any) -> Plain:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **more}


def _list(of: Plain) -> Plain:
    return {"type": "array", "items": of}


def _map(of: Plain, description: str) -> Plain:
    return {"type": "object", "additionalProperties": of, "description": description}


def _named(name: str) -> Plain:
    return {"$ref": f"#/components/schemas/{name}"}


VALUE: Plain = {"type": ["number", "string", "boolean", "null"]}
VALUES = _map(
    VALUE, "Feature → value, as in the cohort's table; '<5' is a detection limit. What is absent is not measured."
)
LIMITS: Plain = {
    "least_points": {
        **MAYBE_NUMBER,
        "minimum": 0,
        "description": "Stop where no test is expected to move the belief by so many points, or hundredths of a continuous "
        "outcome's spread. Where it is not stated: one point, or of a rare outcome a tenth of its percentage, as on the page.",
    },
    "threshold": {
        **MAYBE_NUMBER,
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "description": "Of a binary outcome: stop where no test is likely to carry the belief across this probability.",
    },
    "budget": {"type": ["integer", "null"], "minimum": 0, "description": "Most tests."},
    "cost_budget": {**MAYBE_NUMBER, "minimum": 0, "description": "Most cost in all."},
    "least_gain": {**MAYBE_NUMBER, "minimum": 0, "description": "In nats, of the best test."},
    "confidence": {
        **MAYBE_NUMBER,
        "exclusiveMinimum": 0,
        "maximum": 1,
        "description": "Stop where a class is so likely.",
    },
    "most_entropy": {**MAYBE_NUMBER, "minimum": 0, "description": "In nats: stop where less is left to know."},
}
STOPPING = _object(LIMITS, tuple(LIMITS), description="When stopping is advised; null is no such limit.")
SCHEMAS: Plain = {
    "Error": _object({"error": {**TEXT, "description": "One sentence, or a few, for a person."}}),
    "Cohort": _object({"id": TEXT, "name": TEXT, "version": WHOLE, "content_hash": TEXT}),
    "Feature": _object(
        {
            "name": TEXT,
            "kind": {"enum": list(FEATURE_KINDS)},
            "role": {"enum": ["baseline", "acquirable"]},
            "unit": TEXT,
            "code": {**TEXT, "description": "LOINC; empty where the schema has none."},
            "levels": _list(TEXT),
            "minimum": MAYBE_NUMBER,
            "maximum": MAYBE_NUMBER,
        }
    ),
    "Question": _object(
        {
            "patient": VALUES,
            "patients": {**_list(VALUES), "maxItems": MOST_PATIENTS},
            "bundle": {"type": "object", "description": "A FHIR R4 Bundle: a Patient and LOINC-coded Observations."},
            "model": {**TEXT, "default": "general"},
            "policy": {
                "enum": [*MODEL_POLICIES, None],
                "description": "What tests are ranked by; default: the model's own.",
            },
            "stopping": STOPPING,
            "unavailable": {**_list(TEXT), "description": "Tests that cannot be had; they are not suggested."},
        },
        ("patient", "patients", "bundle", "model", "policy", "stopping", "unavailable"),
        description="Exactly one of patient, patients and bundle.",
        examples=[{"patient": {"age": 71, "sex": "male"}, "unavailable": ["wall motion"], "stopping": {"budget": 5}}],
    ),
    "Belief": _object(
        {
            "outcome": TEXT,
            "kind": {"enum": list(OUTCOME_KINDS)},
            "probabilities": _map(NUMBER, "Class → probability."),
            "positive": {**TEXT, "description": "Of a binary outcome: the class that counts as positive."},
            "quantiles": _map(NUMBER, "Of a continuous outcome: mean, std and quantiles."),
        },
        ("probabilities", "positive", "quantiles"),
    ),
    "Test": _object(
        {
            "feature": TEXT,
            "code": TEXT,
            "status": {"enum": ["open", "known", "unavailable", "declined", "pending"]},
            "gain_nats": {**MAYBE_NUMBER, "description": "Expected reduction of log loss; null where it is known."},
            "cost": NUMBER,
            "gain_per_cost": MAYBE_NUMBER,
            "turnaround_minutes": MAYBE_NUMBER,
            "panel": {"type": ["string", "null"]},
            "recorded_in": {**WHOLE, "description": "Rows of the cohort."},
            "recorded_nearby": {**WHOLE, "description": "The same, among the rows most like this patient."},
        }
    ),
    "Verdict": _object(
        {"action": {"enum": ["measure", "stop", "stopped"]}, "feature": {"type": ["string", "null"]}, "sentence": TEXT}
    ),
    "Unused": _object({"what": TEXT, "why": TEXT, "kind": {"enum": ["unknown", "not read", "value", "unit", "doubt"]}}),
    "Answer": _object(
        {
            "label": {**TEXT, "description": "Where the patient stood in the question."},
            "known": _map(VALUE, "Feature → value that was used."),
            "limits": _map({"enum": ["below", "above"]}, "Feature → which side, where the value is a detection limit."),
            "belief": _named("Belief"),
            "ranking": _list(_named("Test")),
            "verdict": _named("Verdict"),
            "not_used": _list(_named("Unused")),
            "notes": _list(TEXT),
        }
    ),
    "Advice": _object(
        {
            "cohort": _named("Cohort"),
            "model": _object({"name": TEXT, "fingerprint": TEXT}),
            "council": {
                "type": ["object", "null"],
                "description": "Of the models that are heard beside it: weights, seed, versions. null: it answers alone.",
            },
            "patients": _list(_named("Answer")),
            "notes": _list(TEXT),
            "use": TEXT,
        }
    ),
    "Cohorts": _object({"cohorts": _list(_named("Cohort"))}),
    "CohortWithSchema": _object(
        {
            **{name: dict(WHOLE if name == "version" else TEXT) for name in ("id", "name", "version", "content_hash")},
            "outcome": _object(
                {"name": TEXT, "kind": {"enum": list(OUTCOME_KINDS)}, "classes": _list(TEXT), "unit": TEXT}
            ),
            "features": _list(_named("Feature")),
        }
    ),
    "Health": _object({"status": {"const": "ready"}}),
    "CdsServices": _object({"services": _list({"type": "object"})}),
    "CdsCards": _object({"cards": _list({"type": "object"})}),
}
WHAT_CAN_GO_WRONG = {
    401: "The token is missing or wrong.",
    404: "There is no such thing, or it is somebody else's and not shared.",
    408: "The body did not come in time.",
    412: "The resources of the prefetch are missing.",
    413: f"The body is larger than {LARGEST:,} bytes.",
    415: "The body is of another type.",
    422: "What was sent does not fit; the sentence says what and why.",
    503: "The cohort is still being read, or the computer is busy: ask again.",
}
OF_BODIES = (404, 408, 413, 422, 503)


def document() -> Plain:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Learning to Measure",
            "version": __version__,
            "description": f"Belief, ranking and verdict of a patient of a shared cohort. {RESEARCH_ONLY}",
        },
        "security": [{"token": []}],
        "paths": {
            "/health": {"get": {**_operation("Whether the server answers", "Health"), "security": []}},
            "/openapi.json": {"get": {"summary": "This document", "security": [], "responses": _responses(None)}},
            "/v1/cohorts": {"get": _operation("The cohorts that are shared", "Cohorts", 401, 503)},
            "/v1/cohorts/{cohort}": {"get": _operation("A cohort's features", "CohortWithSchema", 401, 404, 503)}
            | _parameter("cohort"),
            "/v1/cohorts/{cohort}/advice": {"post": _advice()} | _parameter("cohort"),
            "/cds-services": {"get": _operation("CDS Hooks: the services", "CdsServices", 401, 503)},
            "/cds-services/{service}": {"post": _cards()} | _parameter("service"),
        },
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(summary: str, answer: str, *faults: int) -> Plain:
    return {"summary": summary, "responses": _responses(answer, *faults)}


def _responses(answer: str | None, *faults: int) -> Plain:
    good: Plain = {"description": "The answer."}
    if answer:
        good["content"] = {"application/json": {"schema": _named(answer)}}
    bad = {"application/json": {"schema": _named("Error")}}
    return {
        "200": good,
        **{str(code): {"description": WHAT_CAN_GO_WRONG[code], "content": bad} for code in sorted(faults)},
    }


def _parameter(name: str) -> Plain:
    return {"parameters": [{"name": name, "in": "path", "required": True, "schema": TEXT}]}


def _advice() -> Plain:
    body = {
        "application/json": {"schema": _named("Question")},
        "application/fhir+json": {"schema": {"type": "object", "description": "A FHIR R4 Bundle."}},
        "text/csv": {"schema": {**TEXT, "description": "A line of column names, and one for each patient."}},
    }
    operation = _operation("Belief, ranking and verdict", "Advice", 401, 415, *OF_BODIES)
    return {**operation, "requestBody": {"required": True, "content": body}}


def _cards() -> Plain:
    operation = _operation("CDS Hooks: the card of an open chart", "CdsCards", 401, 412, *OF_BODIES)
    body = {"application/json": {"schema": {"type": "object", "description": "A request of the hook patient-view."}}}
    return {**operation, "requestBody": {"required": True, "content": body}}

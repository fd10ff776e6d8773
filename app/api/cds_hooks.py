"""CDS Hooks 2.0: each shared cohort with LOINC codes is a service that, when a chart is opened, returns one card.

Everything comes with the request, as its prefetch: this server asks nobody. A card ranks options; it proposes no order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from app.store import NotFound, StoredCohort
from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from l2m_core.patients import PatientRecord, from_plain
from l2m_core.patients.fhir import unversioned
from l2m_core.schema import Schema
from l2m_core.step_through.words import RESEARCH_ONLY, percent, predicted
from l2m_core.tables.cell_parsing import entered_text

HOOK = "patient-view"
NAME = "l2m-"  # in front of the cohort's id
LONGEST_SUMMARY = 140  # characters, by the standard
MOST_SHOWN = 5  # tests, and things that were not used
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&$:@])")


class NothingFetched(InputError):
    """The request came without the resources that the service asks for."""


def service_of(stored: StoredCohort) -> dict[str, Any] | None:
    """What discovery tells of a cohort; None where its schema has no codes by which results are recognised."""
    schema = Schema.from_yaml(stored.schema_yaml)
    codes = [f"http://loinc.org|{feature.code}" for feature in schema.features if feature.used and feature.code]
    if not codes:
        return None
    return {
        "hook": HOOK,
        "id": NAME + stored.id,
        "title": f"What to measure next: {stored.name}, version {stored.version}",
        "description": f"Belief about '{schema.outcome.name}' and a ranking of tests. {RESEARCH_ONLY}",
        "usageRequirements": "The token of this installation as a bearer token, and both resources as prefetch.",
        "prefetch": {
            "patient": "Patient/{{context.patientId}}",
            "observations": f"Observation?patient={{{{context.patientId}}}}&code={','.join(dict.fromkeys(codes))}&_sort=-date",
        },
    }


def cohort_of(service_id: str) -> str:
    if not service_id.startswith(NAME):
        raise NotFound("There is no such service. GET /cds-services lists them.")
    return service_id.removeprefix(NAME)


def record_of(request: Mapping[str, Any], cohort: Cohort) -> tuple[PatientRecord, tuple[str, ...]]:
    """The patient whose chart is open, from the request's prefetch, and notes on what was left out."""
    if request.get("hook") != HOOK:
        raise InputError(f"This service answers the hook '{HOOK}'.")
    context, prefetch = request.get("context"), request.get("prefetch")
    patient_id = context.get("patientId") if isinstance(context, Mapping) else None
    if not isinstance(patient_id, str) or not patient_id:
        raise InputError("The request's context has no patientId.")
    fetched = prefetch if isinstance(prefetch, Mapping) else {}
    patient, observations = fetched.get("patient"), fetched.get("observations")
    if not isinstance(patient, Mapping) or not isinstance(observations, Mapping):
        raise NothingFetched(
            "Send the patient and the observations as prefetch, by the templates that discovery gives. This server asks nobody."
        )
    if observations.get("resourceType") != "Bundle":
        sent = str(observations.get("resourceType"))
        raise NothingFetched(
            f"The observations in the prefetch are a FHIR {sent:.40}, not a Bundle: what was measured is not known."
        )
    if patient.get("resourceType") != "Patient" or patient.get("id") != patient_id:
        raise InputError("The patient in the prefetch is not the one whose chart is open.")
    own, foreign = _own(observations, patient_id)
    found = from_plain({**observations, "entry": [{"resource": patient}, *own]}, cohort)
    notes = (f"Not read: {foreign} × resource of another patient, or of nobody who is named.",) if foreign else ()
    return found.patients[0], (*found.notes, *notes)


def _own(observations: Mapping[str, Any], patient_id: str) -> tuple[list[Mapping[str, Any]], int]:
    """The entries that are this patient's, called as the Patient is, those that tell of the search, and how many are
    somebody else's."""
    entries = observations.get("entry")
    own: list[Mapping[str, Any]] = []
    foreign = 0
    local = f"Patient/{patient_id}"
    for entry in entries if isinstance(entries, list) else []:
        resource = entry.get("resource") if isinstance(entry, Mapping) else None
        subject = resource.get("subject") if isinstance(resource, Mapping) else None
        reference = unversioned(str(subject.get("reference"))) if isinstance(subject, Mapping) else ""
        if isinstance(resource, Mapping) and (reference == local or reference.endswith(f"/{local}")):
            own.append({"resource": {**resource, "subject": {"reference": local}}})
        elif isinstance(resource, Mapping) and resource.get("resourceType") == "OperationOutcome":
            own.append({"resource": resource})
        else:
            foreign += 1
    return own, foreign


# -- the card ------------------------------------------------------------------------------------------------------------


def card(cohort: str, answer: Mapping[str, Any], notes: tuple[str, ...]) -> dict[str, Any]:
    summary = answer["verdict"]["sentence"]
    if len(summary) > LONGEST_SUMMARY:
        summary = summary[: LONGEST_SUMMARY - 1] + "…"
    told = [_belief(answer["belief"]), _ranking(answer["ranking"]), _notes(answer, notes), _left_out(answer)]
    parts = [*told, f"_{RESEARCH_ONLY}_"]
    return {
        "summary": summary,
        "indicator": "info",
        "source": {"label": f"Learning to Measure, cohort {cohort}"},
        "detail": "\n\n".join(part for part in parts if part),
    }


def _belief(belief: Mapping[str, Any]) -> str:
    name = plain(belief["outcome"])
    if "quantiles" in belief:
        told = belief["quantiles"]
        keys = ("mean", "50% quantile", "5% quantile", "95% quantile")
        mean, median, low, high = (predicted(told[key]) for key in keys)
        return f"**{name}**: mean {mean}, median {median}, 90 of 100 between {low} and {high}."
    shares = sorted(belief["probabilities"].items(), key=lambda item: -item[1])
    if "positive" in belief:
        shares = [item for item in shares if item[0] == belief["positive"]]
    return f"**{name}**: " + ", ".join(f"{plain(label)} {percent(share)}" for label, share in shares[:MOST_SHOWN]) + "."


def _ranking(ranking: list[Mapping[str, Any]]) -> str:
    rows = [test for test in ranking if test["status"] == "open"][:MOST_SHOWN]
    if not rows:
        return ""
    lines = [
        f"{place}. {plain(test['feature'])}: {_gain(test['gain_nats'])}, cost {entered_text(test['cost'])}, recorded in "
        f"{test['recorded_in']:,} patients of the cohort"
        for place, test in enumerate(rows, 1)
    ]
    return "\n".join(["Tests by what they are expected to tell:", "", *lines])


def _gain(nats: float | None) -> str:
    return "too rarely measured to say" if nats is None else f"{nats:.3f} nats"


def _notes(answer: Mapping[str, Any], notes: tuple[str, ...]) -> str:
    """What to know about the values that were used, and about the request as a whole."""
    said = [plain(note) for note in (*answer["notes"], *notes)]
    return "\n".join(["To know:", "", *(f"- {note}" for note in said)]) if said else ""


def _left_out(answer: Mapping[str, Any]) -> str:
    left = [f"{plain(item['what'])}: {plain(item['why'])}" for item in answer["not_used"]]
    said = left[:MOST_SHOWN]
    if len(left) > MOST_SHOWN:
        said.append(f"And {len(left) - MOST_SHOWN} more that were not used.")
    return "\n".join(["What was not used, and why:", "", *(f"- {line}" for line in said)]) if said else ""


def plain(text: str) -> str:
    """A name as it is written, whatever Markdown would make of it."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))

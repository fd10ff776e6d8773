"""A ward whose schema knows LOINC codes: what the tests bring patients to."""

from __future__ import annotations

import numpy as np
import pandas as pd

from l2m_core.cohort import Cohort
from l2m_core.schema import Feature, Outcome, Schema

N = 40
FEATURES = (
    Feature("age", role="baseline", unit="years", minimum=0, maximum=120, code="30525-0"),
    Feature("sex", kind="binary", role="baseline", levels=("F", "M"), code="46098-0"),
    Feature("bed", role="ignored"),
    Feature("lactate", unit="mmol/L", minimum=0, maximum=30, code="2524-7"),
    Feature("sodium", unit="mmol/L", code="2951-2"),
    Feature("systolic", unit="mmHg", code="8480-6"),
    Feature("scan", kind="category", levels=("clear", "dense", "doubtful"), code="24627-2"),
)


def ward(lactate_later: bool = False, **options) -> Cohort:
    draw = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": 40 + np.arange(N) % 30,
            "sex": np.where(np.arange(N) % 2, "M", "F"),
            "bed": np.arange(N),
            "lactate": draw.normal(2, 0.5, N).round(1),
            "sodium": draw.normal(140, 3, N).round(),
            "systolic": draw.normal(120, 12, N).round(),
            "scan": draw.choice(["clear", "dense", "doubtful"], N),
            "died": np.where(np.arange(N) % 4, "no", "yes"),
        }
    )
    if lactate_later:
        frame["lactate later"] = frame["lactate"]
    schema = options.pop("schema", Schema(FEATURES, Outcome("died", classes=("no", "yes"))))
    return Cohort.from_frame(frame, schema=schema, name="ward", **options)


def patient(identifier: str = "a", **facts) -> dict:
    return {"resource": {"resourceType": "Patient", "id": identifier, **facts}}


def observation(code: str, value=None, unit="mmol/L", *, of: str | None = "Patient/a", **facts) -> dict:
    """An entry of a Bundle. value: a number becomes a Quantity; anything else is given among `facts`."""
    resource = {
        "resourceType": "Observation",
        "status": "final",
        "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
        **({"subject": {"reference": of}} if of else {}),
        **({"valueQuantity": quantity(value, unit)} if value is not None else {}),
        **facts,
    }
    return {"resource": resource}


def quantity(value: float, unit: str, **more) -> dict:
    return {"value": value, "unit": unit, "system": "http://unitsofmeasure.org", "code": unit, **more}


def bundle(*entries: dict) -> dict:
    return {"resourceType": "Bundle", "type": "collection", "entry": list(entries)}

"""What a model answers on a cohort, as plain JSON: at states of two patients, and for several rows at once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, load_iris

import l2m_core as l2m
from tests.golden import inside
from tests.golden.agreement import plain

COLUMNS = ("feature", "score", "gain", "policy", "status", "support", "support_near")
QUANTILES = (0.05, 0.5, 0.95)


def of_cohort(cohort: l2m.Cohort) -> dict[str, Any]:
    """What is known before any model has read it."""
    found = cohort.diagnostics().findings
    return plain(
        {
            "content_hash": cohort.content_hash,
            "name": cohort.name,
            "rows": len(cohort),
            "kind": cohort.kind,
            "classes": cohort.classes,
            "names": cohort.names,
            "warnings": cohort.warnings,
            "findings": [(one.severity, one.code, one.column) for one in found],
        }
    )


def of_model(memory: inside.CohortMemory) -> dict[str, Any]:
    x = memory.cohort.x
    asked = np.where(np.arange(x.shape[1]) % 2 == 0, x, np.nan)[5:9]
    rollout = memory.acquire(x[20:23], budget=3)
    return plain(
        {
            "model": memory.model.fingerprint,
            "notes": memory.notes,
            "patients": [of_patient(memory, row) for row in like(memory.cohort)],
            "predict": prediction(memory.predict(asked)),
            "rank": memory.rank(asked).to_dict("list"),
            "acquire": rollout.frame().to_dict("list"),
            "acquired": prediction(rollout.predictions[-1]),
        }
    )


def like(cohort: l2m.Cohort) -> list[int]:
    """Two rows of the cohort, which the patients are like: not the first ones, and with results to record."""
    results = (cohort.r & cohort.acquirable).sum(1)
    return [row for row in range(3, len(cohort)) if results[row] >= 2][:2]


def of_patient(memory: inside.CohortMemory, row: int) -> dict[str, Any]:
    """At the start, after a panel of two results and a test that cannot be had, and with half of the rest known."""
    cohort = memory.cohort
    known = entered(cohort, row)
    first = {name: value for name, value in known.items() if name not in cohort.schema.acquirable}
    results = [name for name in known if name not in first]
    start = memory.start(first, stopping=l2m.Stopping(budget=2, confidence=0.9))
    patient = start.observe({name: known[name] for name in results[:2]})
    gone = [name for name in cohort.schema.acquirable if name not in patient.known][1:2]
    middle = patient.unavailable(*gone, reason="broken") if gone else patient
    rest = [name for name in results[2:] if name not in gone][::2]
    end = middle.observe({name: known[name] for name in rest}) if rest else middle
    return {
        "known": first,
        "states": [of_state(state) for state in (start, middle, end)],
        "policies": {policy: ranking(memory.start(first, policy=policy), COLUMNS[:2]) for policy in inside.POLICIES},
        "drivers": middle.drivers().to_dict("list"),
        "preview": middle.preview(middle.suggestion).to_dict("list") if middle.suggestion else None,
    }


def of_state(patient: l2m.Patient) -> dict[str, Any]:
    return {
        "posterior": prediction(patient.posterior),
        "ranking": ranking(patient),
        "suggestion": patient.suggestion,
        "advised to stop": patient.advice is not None,
        "spent": patient.spent,
        "steps": patient.steps,
    }


def ranking(patient: l2m.Patient, columns: tuple[str, ...] = COLUMNS) -> dict[str, Any]:
    return patient.ranking[list(columns)].to_dict("list")


def prediction(found: np.ndarray | inside.Predictive) -> Any:
    if isinstance(found, np.ndarray):
        return found.tolist()
    return {"mean": found.mean, "std": found.std, **{f"q{level:g}": found.quantile(level) for level in QUANTILES}}


def entered(cohort: l2m.Cohort, row: int) -> dict[str, Any]:
    """A row of the cohort as a person would enter it."""
    values = {}
    for feature, code in zip(cohort.features, cohort.x[row], strict=True):
        if not np.isnan(code):
            values[feature.name] = float(code) if feature.kind == "number" else cohort.decode(feature.name, code)
    return values


def of_estimators() -> dict[str, Any]:
    """scikit-learn's face: numbers with gaps, and a table with words."""
    x, y = load_iris(return_X_y=True)
    x = np.where(np.random.default_rng(2).random(x.shape) < 0.2, np.nan, x)
    iris = l2m.L2MClassifier(inside.GOLDEN_MODEL).fit(x[::3], y[::3])
    table = load_diabetes(as_frame=True, scaled=False).frame.iloc[:120].copy()
    table["sex"] = table["sex"].map({1.0: "one", 2.0: "two"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grown = l2m.L2MRegressor(inside.GOLDEN_MODEL).fit(table.drop(columns="target"), table["target"])
        later = pd.DataFrame(table.drop(columns="target").iloc[5:9])
        return plain(
            {"iris": iris.predict_proba(x[1:60:15]), "diabetes": prediction(grown.predict_distribution(later))}
        )

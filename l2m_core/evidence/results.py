"""Evidence: the figures of one cohort, what they say in sentences, and their JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from l2m_core.evidence.bootstrap import Estimate
from l2m_core.evidence.figures import (
    Calibration,
    Curve,
    DecisionCurve,
    Difference,
    Figures,
    PatientGroup,
    Positivity,
    Recalibrated,
    Voice,
)
from l2m_core.evidence.fold_answers import MODEL
from l2m_core.evidence.grade import Grade
from l2m_core.evidence.sentences import Sentence, grade_of, report, sentences

MODEL_ALONE, ORDERED_ALONE, AREAS_POOLED = 2, 3, 4
FORMAT = 5
"""1 had fixed orders that said nothing of tests nobody could judge; MODEL_ALONE had the general model's figures only; in
ORDERED_ALONE tests were ordered by the general model alone, also where step-throughs are shown a council; in AREAS_POOLED the
AUROC compared patients of different folds too."""


@dataclass(frozen=True)
class Evidence(Figures):
    """Whether to trust a model on one cohort."""

    def summary(self) -> tuple[Sentence, ...]:
        """What the figures say, in sentences with a verdict each."""
        return sentences(self)

    @property
    def grade(self) -> Grade:
        """One word for the whole, with its reasons."""
        return grade_of(self)

    def text(self) -> str:
        """The same for a terminal, with a table of log loss."""
        return report(self)

    def to_data(self) -> dict[str, Any]:
        """For JSON: what is not a number becomes None."""
        return {"format": FORMAT, **_plain(asdict(self))}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Evidence | None:
        """None where a version of this program wrote it that is later, or too early to be read."""
        if data.get("format") == MODEL_ALONE:
            data = _with_one_voice(data)
        elif data.get("format") == ORDERED_ALONE and data.get("shown") == MODEL:  # no council, so nothing has changed
            data = {**data, "format": AREAS_POOLED}
        if data.get("format") == AREAS_POOLED:
            data = {**data, "format": FORMAT, "areas_pooled": True}
        if data.get("format") != FORMAT:
            return None
        rest = {key: value for key, value in data.items() if key != "format"}
        try:
            return cls(**{key: _read(key, value) for key, value in rest.items()})
        except (TypeError, KeyError):
            return None


def _with_one_voice(data: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence of the general model alone: its own order's curve is all that was predicted; nothing was put beside it."""
    curve = data["curves"][0]
    alone = {"name": MODEL, "loss": curve["loss"], "scores": curve["scores"]}
    alone["overall"] = {"value": sum(e["value"] for e in curve["loss"]) / len(curve["loss"]), "low": None, "high": None}
    alone["against_shown"] = {"value": 0.0, "low": 0.0, "high": 0.0}
    nothing: dict[str, Any] = {"recalibrated": None, "decisions_at": [], "groups": []}
    kept = {key: value for key, value in data.items() if key != "over_start"}  # told on no page any more
    return {**kept, **nothing, "format": AREAS_POOLED, "voices": [alone], "shown": MODEL}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read(key: str, value: Any) -> Any:
    if key in ("base", "over_base"):
        return _estimate(value)
    if key == "curves":
        return tuple(
            Curve(
                c["order"],
                tuple(c["tests"]),
                tuple(c["cost"]),
                _estimates(c["loss"]),
                {name: _estimates(score) for name, score in c["scores"].items()},
            )
            for c in value
        )
    if key == "differences":
        return tuple(Difference(d["order"], _estimate(d["overall"]), _estimates(d["by_step"])) for d in value)
    if key == "calibration":
        return tuple(Calibration(**{name: _read(name, item) for name, item in c.items()}) for c in value)
    if key == "voices":
        return tuple(
            Voice(
                v["name"],
                _estimates(v["loss"]),
                _estimate(v["overall"]),
                {name: _estimates(score) for name, score in v["scores"].items()},
                _estimate(v["against_shown"]),
            )
            for v in value
        )
    if key == "recalibrated" and value is not None:
        calibration = Calibration(**{name: _read(name, item) for name, item in value["calibration"].items()})
        return Recalibrated(tuple(value["shift"]), value["slope"], _estimate(value["change"]), calibration)
    if key == "decisions_at":
        return tuple(
            DecisionCurve(
                d["outcome"],
                tuple(d["thresholds"]),
                {name: tuple(benefit) for name, benefit in d["benefit"].items()},
                _estimates(d["advantage"]),
            )
            for d in value
        )
    if key == "groups":
        return tuple(PatientGroup(**group) for group in value)
    if key == "wishes":
        return tuple(Positivity(**wish) for wish in value)
    return (
        tuple(tuple(item) if isinstance(item, list) else item for item in value) if isinstance(value, list) else value
    )


def _estimate(data: Mapping[str, float | None]) -> Estimate:
    value, low, high = (
        float("nan") if data[key] is None else float(data[key] or 0.0) for key in ("value", "low", "high")
    )
    return Estimate(value, low, high)


def _estimates(data: Sequence[Mapping[str, float | None]]) -> tuple[Estimate, ...]:
    return tuple(_estimate(each) for each in data)

"""Evidence: the figures of one cohort, what they say in sentences, and their JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from l2m_core.evidence.bootstrap import Estimate
from l2m_core.evidence.figures import Calibration, Curve, Difference, Figures, Positivity
from l2m_core.evidence.sentences import Sentence, report, sentences

FORMAT = 2  # 1 had fixed orders whose tests may not have been judged, and did not say so


@dataclass(frozen=True)
class Evidence(Figures):
    """Whether to trust a model on one cohort."""

    def summary(self) -> tuple[Sentence, ...]:
        """What the figures say, in sentences with a verdict each."""
        return sentences(self)

    def text(self) -> str:
        """The same for a terminal, with a table of log loss."""
        return report(self)

    def to_data(self) -> dict[str, Any]:
        """For JSON: what is not a number becomes None."""
        return {"format": FORMAT, **_plain(asdict(self))}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Evidence | None:
        """None where another version of this program wrote it."""
        if data.get("format") != FORMAT:
            return None
        rest = {key: value for key, value in data.items() if key != "format"}
        try:
            return cls(**{key: _read(key, value) for key, value in rest.items()})
        except (TypeError, KeyError):
            return None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read(key: str, value: Any) -> Any:
    if key in ("base", "over_base", "over_start"):
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

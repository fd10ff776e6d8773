"""The posterior in few words, for lists, tables and reports."""

from __future__ import annotations

from collections.abc import Mapping

from app.ui import labels
from app.ui.step_through import wording
from app.ui.step_through.belief import HIGH, LOW, MEDIAN
from l2m_core.schema import Outcome


def leading(outcome: Outcome, posterior: Mapping[str, float]) -> str:
    """The number to follow: the positive class, the likeliest one, or the median."""
    if outcome.kind == "continuous":
        return MEDIAN
    return outcome.classes[1] if outcome.kind == "binary" else max(posterior, key=lambda name: posterior[name])


def name_of(outcome: Outcome, key: str) -> str:
    """What the number under this key is called."""
    if outcome.kind == "continuous":
        return labels.with_unit(f"median {labels.plain(outcome.name)}", f"({outcome.unit})" if outcome.unit else "")
    return (
        wording.positive(outcome) if outcome.kind == "binary" else f"{labels.plain(outcome.name)}: {labels.plain(key)}"
    )


def number(outcome: Outcome, posterior: Mapping[str, float], key: str) -> str:
    if key not in posterior:
        return "—"
    value = posterior[key]
    return (
        labels.with_unit(labels.number(value), outcome.unit) if outcome.kind == "continuous" else labels.percent(value)
    )


def short(outcome: Outcome, posterior: Mapping[str, float] | None) -> str:
    """'31%', 'long 63%' or '5.2 days'; '—' where nothing was recorded."""
    if not posterior:
        return "—"
    key = leading(outcome, posterior)
    text = number(outcome, posterior, key)
    return f"{labels.plain(key)} {text}" if outcome.kind == "multiclass" else text


def column(outcome: Outcome) -> str:
    """What stands above a column of `short` answers: of several classes, each names the one that it is of."""
    return f"{labels.plain(outcome.name)}, likeliest" if outcome.kind == "multiclass" else name_of(outcome, "")


def sentence(outcome: Outcome, posterior: Mapping[str, float]) -> str:
    """The answer as people say it, with a natural frequency or an interval."""
    if not posterior:
        return "What was believed was not recorded."
    key = leading(outcome, posterior)
    if outcome.kind == "continuous":
        low, middle, high = (labels.number(posterior[quantile]) for quantile in (LOW, MEDIAN, HIGH))
        unit = f" {outcome.unit}" if outcome.unit else ""
        return f"{labels.plain(outcome.name)}: median {middle}{unit}; 90 of 100 patients like this between {low} and {high}."
    return (
        f"{name_of(outcome, key)}: {labels.percent(posterior[key])}, that is {labels.of_100(posterior[key])} "
        "patients like this."
    )

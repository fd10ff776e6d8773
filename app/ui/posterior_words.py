"""The posterior in words and short numbers: for the page, lists, tables and reports alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.ui import labels
from l2m_core.schema import Outcome

AFFIRMATIVE = {"1", "yes", "y", "true", "t", "positive", "pos", "present"}
NO_NEWS = 0.01  # of the 90% interval's width: smaller changes of a continuous outcome are not reported
# Of a continuous outcome, as the trace names them. The mean is followed everywhere: verdict, preview, typical changes and the
# rules for stopping are about it, since beliefs after a result average to the belief before it.
MEAN, MEDIAN, LOW, HIGH = "mean", "50% quantile", "5% quantile", "95% quantile"


def positive(outcome: Outcome) -> str:
    """What it means that a binary outcome is positive: its name, or name and class."""
    name = outcome.classes[1]
    if name.casefold() in AFFIRMATIVE:
        return labels.plain(outcome.name)
    return f"{labels.plain(outcome.name)}: {labels.plain(name)}"


def happened(outcome: Outcome) -> str:
    """What the patients who had the outcome had, to follow a number of them: 'sepsis', 'died in hospital', 'status 2'."""
    name = outcome.classes[1]
    if name.casefold() in AFFIRMATIVE:
        return labels.plain(outcome.name)
    return labels.plain(name) if any(sign.isalpha() for sign in name) else f"{labels.plain(outcome.name)} {name}"


def leading(outcome: Outcome, posterior: Mapping[str, float]) -> str:
    """The key of the number to follow: the positive class, the likeliest one, or the mean."""
    if outcome.kind == "continuous":
        return MEAN
    return outcome.classes[1] if outcome.kind == "binary" else max(posterior, key=lambda name: posterior[name])


def name_of(outcome: Outcome, key: str) -> str:
    """What the number under this key is called."""
    if outcome.kind == "continuous":
        return f"mean {labels.name_with_unit(outcome.name, outcome.unit)}"
    return positive(outcome) if outcome.kind == "binary" else f"{labels.plain(outcome.name)}: {labels.plain(key)}"


def most_believed(outcome: Outcome, posteriors: Sequence[Mapping[str, float]], count: int) -> list[str]:
    """The classes that were likeliest at any step, in the order of the outcome's classes.

    A class that leads at the end may have been unlikely before, and one that led before may be unlikely now.
    """
    peaks = {name: max(posterior[name] for posterior in posteriors) for name in outcome.classes}
    kept = sorted(peaks, key=lambda name: -peaks[name])[:count]
    return [name for name in outcome.classes if name in kept]


def number(outcome: Outcome, posterior: Mapping[str, float], key: str) -> str:
    if key not in posterior:
        return "—"
    value = posterior[key]
    if outcome.kind == "continuous":
        return labels.with_unit(labels.predicted(value), outcome.unit)
    return labels.percent(value)


def short(outcome: Outcome, posterior: Mapping[str, float] | None) -> str:
    """'31%', 'long 63%' or '5.2 days'; '—' where nothing was recorded."""
    if not posterior:
        return "—"
    key = leading(outcome, posterior)
    text = number(outcome, posterior, key)
    return f"{labels.plain(key)} {text}" if outcome.kind == "multiclass" else text


def column(outcome: Outcome) -> str:
    """The heading of a column of `short` posteriors; of several classes, each cell names its own."""
    return f"{labels.plain(outcome.name)}, likeliest" if outcome.kind == "multiclass" else name_of(outcome, "")


def sentence(outcome: Outcome, posterior: Mapping[str, float]) -> str:
    """The posterior as people say it, with a natural frequency or an interval."""
    if not posterior:
        return "The prediction was not recorded."
    key = leading(outcome, posterior)
    if outcome.kind == "continuous":
        mean = number(outcome, posterior, key)
        return f"{labels.plain(outcome.name)}: mean {mean}, {spread(outcome, posterior)}."
    return (
        f"{name_of(outcome, key)}: {labels.percent(posterior[key])}, that is {labels.of_100(posterior[key])} "
        "patients like this."
    )


def spread(outcome: Outcome, posterior: Mapping[str, float]) -> str:
    """What a mean does not say: 'median 4.1 days; 90 of 100 patients like this between 0 and 12 days'."""
    median, low, high = (number(outcome, posterior, quantile) for quantile in (MEDIAN, LOW, HIGH))
    return f"median {median}; 90 of 100 patients like this between {low} and {high}"


def change(outcome: Outcome, now: Mapping[str, float], before: Mapping[str, float] | None, key: str) -> str:
    """The change since the last step, signed: '+6 points', '−12.4', 'unchanged'.

    Of probabilities it is the difference of the percentages that people read, so that 21% becomes 22% by 1 point. Of
    numbers, what is small beside how unsure the prediction is is no news.
    """
    if before is None:
        return ""
    if outcome.kind == "continuous":
        difference = now[key] - before[key]
        if abs(difference) < NO_NEWS * (now[HIGH] - now[LOW]):
            return "unchanged"
        return f"{'+' if difference > 0 else '−'}{labels.predicted(abs(difference))}"
    points = round(100 * now[key]) - round(100 * before[key])
    return "unchanged" if points == 0 else f"{'+' if points > 0 else '−'}{labels.counted(abs(points), 'point')}"

"""One word for a cohort: strong, fair, or not to be relied on, with the reasons. It rests on the figures' own verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from l2m_core.evidence.figures import Figures

FEW_OUTCOMES = 30  # below it every figure is rough
ENOUGH_OUTCOMES = 100  # asked rows of the rarest class (of all, for a continuous outcome) behind a strong grade
LEAST_SKILL = 0.05  # of the base rate's log loss; what predicts less than that tells little of a patient
NOTABLE_LOSS = 0.01  # of the base rate's log loss, by which a conventional model is better
# That of a continuous outcome changes with its unit, differences do not: here it is a normal distribution's of spread 1.
NORMAL_LOSS = 0.5 * math.log(2 * math.pi * math.e)

Word = Literal["strong", "fair", "not to be relied on"]


@dataclass(frozen=True)
class Grade:
    word: Word
    reasons: tuple[str, ...]


def grade(figures: Figures, calibration: str, positivity: str) -> Grade:
    """calibration, positivity: the verdicts of the sentences about them."""
    against = ["the model was fine-tuned on these very patients"] if figures.tuned == "here" else []
    against += _about_predictions(figures)
    if _rarest(figures) < FEW_OUTCOMES:
        against.append(f"only {_asked_in_words(figures)}, too few to judge by: ask more, where there are more")
    if calibration == "bad":
        against.append("the predictions are not calibrated")
    if against:
        return Grade("not to be relied on", tuple(against))
    doubts = ["the model was fine-tuned on a cohort that may hold some of these patients"] if figures.tuned else []
    doubts += [*_about_size(figures), *_about_others(figures), *_about_groups(figures)]
    if calibration == "open":
        doubts.append("the predictions are not shown to be well calibrated")
    if positivity == "bad":
        doubts.append("tests that it would ask for were often not recorded, so its order cannot be judged")
    if doubts:
        return Grade("fair", tuple(doubts))
    reasons = ["the predictions are better than the base rate, and well calibrated"]
    if len(figures.voices) > 1:
        reasons.append("no conventional model is shown to be better")
    return Grade("strong", tuple(reasons))


def _about_predictions(figures: Figures) -> list[str]:
    over = figures.over_base
    if over.low > 0:
        return ["the predictions are worse than the base rate"]
    return [] if over.high < 0 else ["the predictions are not shown to be better than the base rate"]


def _about_size(figures: Figures) -> list[str]:
    found = []
    skill = -figures.over_base.value / figures.base.value if figures.kind != "continuous" else 1.0
    if skill < LEAST_SKILL:
        found.append(f"they tell little: log loss is only {skill:.0%} below the base rate's")
    if _rarest(figures) < ENOUGH_OUTCOMES:
        found.append(f"only {_asked_in_words(figures)}")
    return found


def _rarest(figures: Figures) -> int:
    """Rows asked of the rarest class; of all, for a continuous outcome."""
    return min(figures.asked_by_class, default=figures.asked)


def _asked_in_words(figures: Figures) -> str:
    return f"{_rarest(figures)} rows {'of the rarest outcome ' if figures.asked_by_class else ''}were asked"


def _about_others(figures: Figures) -> list[str]:
    best = figures.best_conventional
    if best is None or best.against_shown.high >= 0:
        return []
    base = NORMAL_LOSS if figures.kind == "continuous" else figures.base.value
    if -best.against_shown.value < NOTABLE_LOSS * base:
        return []
    predicts = "predict" if best.name == "trees" else "predicts"
    return [f"{best.label(figures.kind)} {predicts} better here"]


def _about_groups(figures: Figures) -> list[str]:
    off = [group for group in figures.groups if group.is_off]
    return [f"in {len(off)} of {len(figures.groups)} groups of patients the predictions are off"] if off else []

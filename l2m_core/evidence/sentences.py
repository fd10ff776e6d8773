"""What the figures say, in sentences. Nothing is claimed that its interval does not carry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from l2m_core.errors import ConfigError
from l2m_core.evidence.bootstrap import Estimate
from l2m_core.evidence.figures import DecisionCurve, Difference, Figures, PatientGroup, Recalibrated, Voice
from l2m_core.evidence.fixed_order import FEWEST_RECORDED
from l2m_core.evidence.fold_answers import FIXED, MODEL, PER_COST, RANDOM
from l2m_core.evidence.grade import FEW_OUTCOMES, Grade, grade
from l2m_core.step_through.words import as_sentence, counted, percent, predicted, with_unit

LABELS = {
    MODEL: "the model's order",
    RANDOM: "random order",
    FIXED: "the best fixed order",
    PER_COST: "the model's order by gain per cost",
}
ECE_LIMIT = 0.05
NOTABLE_UNRECORDED = 0.2
NO_NEWS = 0.002  # nats: smaller differences change nothing for a patient, however sure they are
NOTABLE_UNFOUNDED = 0.05  # share of the patients; beyond it an arbitrary position could be what the interval shows

TOO_FEW_TO_JUDGE = 0.05
"""Calibration error that perfect predictions would show by chance; beyond it, rows are too few to judge."""

Verdict = Literal["good", "open", "bad", "note"]


@dataclass(frozen=True)
class Sentence:
    """verdict: good or bad where the figures say so; open where they do not; note: good to know."""

    about: Literal[
        "asked", "order", "others", "prediction", "calibration", "recalibration", "groups", "positivity", "tuned"
    ]
    verdict: Verdict
    text: str


def sentences(figures: Figures) -> tuple[Sentence, ...]:
    """The most important first: does the order help, who predicts best, do the predictions help, are they calibrated, and what
    was not seen."""
    found = [*_about_tuning(figures)]
    found += [*_about_orders(figures), *_about_others(figures), _about_prediction(figures), _about_calibration(figures)]
    found += [*_about_recalibration(figures), *_about_groups(figures)]
    found += [*_about_positivity(figures), _about_asked(figures), *_about_few(figures)]
    return tuple(found)


def grade_of(figures: Figures) -> Grade:
    positivity = _about_positivity(figures)[0].verdict
    return grade(figures, _about_calibration(figures).verdict, positivity)


def grade_in_words(found: Grade) -> str:
    reasons = "; ".join(found.reasons)
    return f"For this cohort: {found.word}. {as_sentence(reasons)}."


def report(figures: Figures) -> str:
    """For a terminal: the grade, the sentences and the table of log loss."""
    lines = [grade_in_words(grade_of(figures)), *(sentence.text for sentence in sentences(figures))]
    lines += ["", f"{'tests':>5}  " + "  ".join(f"{LABELS[curve.order]:>26}" for curve in figures.curves)]
    for t in range(figures.budget + 1):
        cells = "  ".join(f"{_interval(curve.loss[t]):>26}" for curve in figures.curves)
        lines.append(f"{t:>5}  {cells}")
    lines.append("       log loss in nats, with 95% intervals over patients")
    return "\n".join(lines)


def _about_tuning(figures: Figures) -> list[Sentence]:
    """Cross-fitting keeps patients out of what the model reads, not out of what its weights were fitted to."""
    if figures.tuned == "here":
        return [
            Sentence(
                "tuned",
                "bad",
                "The model was fine-tuned on these very patients: its weights have seen their outcomes, and all figures "
                "here are too good. Ask the model that it was tuned from, or ask this one about other patients.",
            )
        ]
    if figures.tuned == "elsewhere":
        return [
            Sentence(
                "tuned",
                "note",
                "The model was fine-tuned on a cohort. Where that held some of these patients, its weights have seen their "
                "outcomes, and the figures here are too good.",
            )
        ]
    return []


def _about_orders(figures: Figures) -> list[Sentence]:
    by_order = {difference.order: difference for difference in figures.differences}
    return [_about_order(by_order[order], figures) for order in (RANDOM, FIXED) if order in by_order]


def _about_order(difference: Difference, figures: Figures) -> Sentence:
    other, overall = LABELS[difference.order], difference.overall
    unjudged = _unjudged_words(figures) if difference.order == FIXED else ""
    if unjudged and figures.unfounded > NOTABLE_UNFOUNDED:
        return Sentence("order", "open", f"Too few rows to find a fixed order to compare with: {unjudged}.")
    size = f"{_signed(overall.value)} nats, 95% interval {_signed(overall.low)} to {_signed(overall.high)}"
    size = f"({size}, in log loss, averaged over 0 to {figures.budget} tests)"
    also = f" For the fixed order {unjudged}, and came last." if unjudged else ""
    if abs(overall.value) < NO_NEWS and not overall.low <= 0 <= overall.high:
        return Sentence("order", "note", f"On this cohort the model's order is as good as {other} {size}.{also}")
    if overall.high < 0:
        return Sentence("order", "good", f"On this cohort the model's order is better than {other} {size}.{also}")
    if overall.low > 0:
        return Sentence("order", "bad", f"On this cohort the model's order is worse than {other} {size}.{also}")
    return Sentence(
        "order", "open", f"On this cohort the model's order is not distinguishable from {other} {size}.{also}"
    )


def _unjudged_words(figures: Figures) -> str:
    count = len({name for names in figures.unjudged for name in names})
    if not count:
        return ""
    return (
        f"{count} of {len(figures.actions)} tests could not be judged, with fewer than {FEWEST_RECORDED} rows to judge by "
        "in at least one fold"
    )


def _about_others(figures: Figures) -> list[Sentence]:
    """Who predicts best, and by how much. Nobody is called better than the shown voice unless the interval says so."""
    if len(figures.voices) < 2:
        return []
    best, *others = sorted(figures.voices, key=lambda voice: voice.overall.value)
    listed = "; ".join(f"{voice.label(figures.kind)} {voice.overall.value:z.3f}" for voice in others)
    lead = (
        f"Head to head, knowing the same of each patient, {best.label(figures.kind)} {_has(best)} the lowest log loss "
        f"({best.overall.value:z.3f} nats, averaged over 0 to {figures.budget} tests; {listed})"
    )
    shown, rival = figures.shown_voice, figures.best_conventional
    if rival is None:
        return [Sentence("others", "note", f"{lead}.")]
    gap = rival.against_shown
    ours, theirs = shown.label(figures.kind), rival.label(figures.kind)
    # Of rival minus shown: above zero speaks for the shown voice.
    differs = f"{_signed(gap.value)} nats of log loss, 95% interval {_signed(gap.low)} to {_signed(gap.high)}"
    if abs(gap.value) < NO_NEWS and not gap.low <= 0 <= gap.high:
        return [
            Sentence(
                "others", "note", f"{lead}. {as_sentence(ours)} and {theirs} are as good as each other ({differs})."
            )
        ]
    if gap.high < 0:
        size = f"{-gap.value:.3f} nats, 95% interval {-gap.high:.3f} to {-gap.low:.3f}"
        return [Sentence("others", "bad", f"{lead}. {as_sentence(theirs)} {_is(rival)} better than {ours} by {size}.")]
    if gap.low > 0:
        size = f"{gap.value:.3f} nats, 95% interval {gap.low:.3f} to {gap.high:.3f}"
        return [Sentence("others", "good", f"{lead}. {as_sentence(ours)} is better than {theirs} by {size}.")]
    open_words = f"{as_sentence(ours)} and {theirs} are not distinguishable ({theirs}: {differs})"
    return [Sentence("others", "open", f"{lead}. {open_words}.")]


def _has(voice: Voice) -> str:
    return "have" if voice.name == "trees" else "has"


def _is(voice: Voice) -> str:
    return "are" if voice.name == "trees" else "is"


def _about_recalibration(figures: Figures) -> list[Sentence]:
    """Offered only where it is shown to help."""
    found = figures.recalibrated
    if found is None or found.change.high >= 0:
        return []
    return [
        Sentence(
            "recalibration",
            "open",
            f"Recalibrated by what happened, the predictions would be better ({_signed(found.change.value)} nats, "
            f"{_signed(found.change.low)} to {_signed(found.change.high)}; off by {100 * found.calibration.error:.1f} "
            f"percentage points instead of {100 * figures.calibration[-1].error:.1f}): {formula(figures, found)}. "
            "Step-throughs show them as they are.",
        )
    ]


def formula(figures: Figures, found: Recalibrated) -> str:
    """How to recalibrate by hand."""
    if figures.kind == "binary":
        sign = "+" if found.shift[1] >= 0 else "−"
        return f"log odds × {found.slope:.2f} {sign} {abs(found.shift[1]):.2f}"
    shifts = ", ".join(f"{name} {_signed(shift)}" for name, shift in zip(figures.classes, found.shift, strict=True))
    return f"log probability × {found.slope:.2f}, then {shifts}, then scaled to sum to 1"


def _about_groups(figures: Figures) -> list[Sentence]:
    if not figures.groups:
        return []
    off = [group for group in figures.groups if group.is_off]
    if not off:
        said = f"In none of {counted(len(figures.groups), 'group')} of patients are the predictions shown to be off"
        if figures.calibration[-1].by_chance > TOO_FEW_TO_JUDGE:
            return [Sentence("groups", "open", f"{said}; rows are too few to tell.")]
        return [Sentence("groups", "good", f"{said}.")]
    worst = max(off, key=lambda group: abs(group.predicted - group.observed))
    told = "; ".join(
        _of_group(group, figures) for group in [worst, *(group for group in off if group is not worst)][:3]
    )
    return [
        Sentence(
            "groups",
            "bad",
            f"In {len(off)} of {len(figures.groups)} groups of patients {what_of_groups(figures)} is off: {told}.",
        )
    ]


def after_tests(figures: Figures) -> str:
    """When the last figures are of: a cohort may have more tests than patients were asked."""
    return f"after up to {counted(figures.budget, 'test')}"


def what_of_groups(figures: Figures) -> str:
    """What is predicted of the patients of a group, and held against what was observed."""
    if figures.kind == "continuous":
        return f"the predicted mean of {figures.outcome}"
    of = f"'{figures.classes[1]}'" if figures.kind == "binary" else "the likeliest class"
    return f"the probability of {of}"


def _of_group(group: PatientGroup, figures: Figures) -> str:
    believed, observed, low, high = (
        value_of_group(value, figures) for value in (group.predicted, group.observed, group.low, group.high)
    )
    return (
        f"{group.feature} {group.group}: {believed} predicted, {observed} observed ({low} to {high}, {group.rows} rows)"
    )


def value_of_group(value: float, figures: Figures) -> str:
    """What was predicted or observed in a group of patients: '41%', '3,412 g'."""
    return with_unit(predicted(value), figures.unit) if figures.kind == "continuous" else percent(value)


def check_threshold(threshold: float) -> None:
    if not 0 < threshold < 1:
        raise ConfigError(f"The threshold {threshold:g} is no probability: choose one between 0 and 1, such as 0.2.")
    if not math.isclose(100 * threshold, round(100 * threshold), abs_tol=1e-6):
        below = min(98, max(1, int(100 * threshold)))
        raise ConfigError(
            f"The threshold {threshold:g} is no whole percentage; what acting brings is known from 0.01 to 0.99 in steps "
            f"of 0.01: choose {below / 100:g} or {(below + 1) / 100:g}."
        )


def at_threshold(curve: DecisionCurve, threshold: float, label: str) -> Sentence:
    """What acting on one class's probability would bring at this threshold."""
    check_threshold(threshold)
    number = min(range(len(curve.thresholds)), key=lambda s: abs(curve.thresholds[s] - threshold))
    found, of_all = curve.advantage[number], curve.benefit["all"][number]
    default = "acting on everybody" if of_all > 0 else "acting on nobody"
    size = f"{100 * found.value:+.1f} of 100 patients, {100 * found.low:+.1f} to {100 * found.high:+.1f}".replace(
        "-", "−"
    )
    who = f"Whoever acts from {curve.thresholds[number]:.0%} on for '{curve.outcome}', by {label},"
    if found.low > 0:
        return Sentence("others", "good", f"{who} does better than by {default} (net benefit {size}).")
    if found.high < 0:
        return Sentence("others", "bad", f"{who} does worse than by {default} (net benefit {size}).")
    return Sentence(
        "others", "open", f"{who} does not do distinguishably better than by {default} (net benefit {size})."
    )


def _about_prediction(figures: Figures) -> Sentence:
    start, end = figures.shown_voice.loss[0], figures.shown_voice.loss[-1]
    moved = f"log loss goes from {start.value:z.3f} before any test to {end.value:z.3f} after up to {figures.budget}"
    score = _score_words(figures)
    over = figures.over_base
    # Of the last step alone, where the sentences around it average over all steps.
    size = (
        f"{_signed(over.value)} nats, 95% interval {_signed(over.low)} to {_signed(over.high)}, {after_tests(figures)}"
    )
    if over.high < 0:
        verdict: Verdict = "good"
        against = f"The predictions are better than the base rate ({size})"
    elif over.low > 0:
        verdict, against = "bad", f"The predictions are worse than the base rate ({size}): do not use them here"
    else:
        verdict, against = "open", f"The predictions are not distinguishable from the base rate ({size})"
    return Sentence("prediction", verdict, f"{against}; {moved}{score}.")


def _score_words(figures: Figures) -> str:
    name = "auroc" if figures.kind != "continuous" else "crps"
    scores = figures.shown_voice.scores[name]
    start, end = scores[0].value, scores[-1].value
    if start != start or end != end:
        return ""
    if name == "auroc":
        return f", AUROC from {start:.2f} to {end:.2f}"
    return f", CRPS from {predicted(start)} to {with_unit(predicted(end), figures.unit)}"


def _about_calibration(figures: Figures) -> Sentence:
    end = figures.calibration[-1]
    off, chance = f"{100 * end.error:.1f}", f"{100 * end.by_chance:.1f}"
    what = "probabilities" if figures.kind != "continuous" else "predicted intervals"
    measured = f"off by {off} percentage points on average (perfect ones would show {chance} on so many rows by chance)"
    if end.by_chance > TOO_FEW_TO_JUDGE:
        return Sentence("calibration", "open", f"Too few rows to judge whether the {what} are calibrated: {measured}.")
    if end.error <= max(1.5 * end.by_chance, 0.01):
        return Sentence(
            "calibration", "good", f"{as_sentence(after_tests(figures))}, the {what} are well calibrated: {measured}."
        )
    if end.error - end.by_chance <= ECE_LIMIT:
        return Sentence(
            "calibration",
            "open",
            f"{as_sentence(after_tests(figures))}, the {what} are roughly calibrated: {measured}.",
        )
    return Sentence(
        "calibration", "bad", f"{as_sentence(after_tests(figures))}, the {what} are not calibrated: {measured}."
    )


def _about_positivity(figures: Figures) -> list[Sentence]:
    decisions = figures.decisions
    if not decisions:
        return [Sentence("positivity", "open", "No test could be asked of any row, so orders cannot be compared.")]
    unseen = 1 - sum(wish.recorded for wish in figures.wishes) / decisions
    thin = sum(wish.thin for wish in figures.wishes) / decisions
    if unseen == 0:
        return [Sentence("positivity", "good", "Every test that the model asked for had been recorded.")]
    verdict: Verdict = "open" if unseen <= NOTABLE_UNRECORDED and thin <= NOTABLE_UNRECORDED else "bad"
    few = f" In {percent(thin)} few patients like the one asked had the test." if thin >= 0.005 else ""
    missing = max(figures.wishes, key=lambda wish: wish.wished - wish.recorded)
    return [
        Sentence(
            "positivity",
            verdict,
            f"In {percent(unseen)} of its {decisions:,} decisions the model would first have asked for a test that had "
            f"not been recorded (most often '{missing.action}'); it took the best recorded one, and what it would have "
            f"learned is not known.{few}",
        )
    ]


def _about_asked(figures: Figures) -> Sentence:
    bound = "All" if figures.asked == figures.rows else f"{figures.asked:,} of"
    return Sentence(
        "asked",
        "note",
        f"{bound} {figures.rows:,} rows were asked, each of a model that had read only other patients (at least "
        f"{figures.context_rows:,} rows, {figures.folds} folds). Intervals say how far the figures would move with "
        "other patients asked; they say nothing of another hospital, or of tests ordered differently than in this table.",
    )


def _about_few(figures: Figures) -> list[Sentence]:
    if figures.kind == "continuous":
        few = figures.asked < FEW_OUTCOMES
        return [Sentence("asked", "note", f"Only {figures.asked} rows were asked: take every figure as rough.")] * few
    rarest = min(range(len(figures.classes)), key=lambda k: figures.asked_by_class[k])
    count = figures.asked_by_class[rarest]
    if count >= FEW_OUTCOMES:
        return []
    return [
        Sentence(
            "asked",
            "note",
            f"Only {count} of the rows asked have the outcome '{figures.classes[rarest]}': take every figure as rough.",
        )
    ]


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:z.3f} [{estimate.low:z.3f}, {estimate.high:z.3f}]"

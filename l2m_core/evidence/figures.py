"""What is known of a model on one cohort, as plain numbers that can be stored and drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from l2m_core.evidence.bootstrap import Estimate


@dataclass(frozen=True)
class Curve:
    """One order of tests at T + 1 points: before any test, and after each. `scores`: auroc, of pairs within folds; or crps
    and rmse."""

    order: str
    tests: tuple[float, ...]
    """Mean number of tests taken: rows with no test left stay where they are."""
    cost: tuple[float, ...]
    loss: tuple[Estimate, ...]
    scores: Mapping[str, tuple[Estimate, ...]]


@dataclass(frozen=True)
class Difference:
    """The model's order minus another, in log loss, paired by row: below zero, the model's order is better."""

    order: str
    overall: Estimate
    """Averaged over 0 … T tests."""
    by_step: tuple[Estimate, ...]


@dataclass(frozen=True)
class Calibration:
    """After some number of tests in the model's order. Classes: a reliability curve of bins of predictions. Continuous: the
    coverage of central intervals."""

    tests: int
    predicted: tuple[float, ...]
    """Mean predicted probability of each bin; or nominal levels."""
    observed: tuple[float, ...]
    """Observed share of each bin; or the share of outcomes that are covered."""
    low: tuple[float, ...]
    """Wilson's 95% interval of `observed`."""
    high: tuple[float, ...]
    count: tuple[int, ...]
    """Rows of each bin."""
    error: float
    """Mean distance of predicted and observed."""
    by_chance: float
    """The error that perfectly calibrated predictions would show on as many rows."""


@dataclass(frozen=True)
class Positivity:
    """How often the model would have taken a test first, and how often it had been recorded in those rows."""

    action: str
    wished: int
    recorded: int
    thin: int
    """How often fewer than ten of the context rows nearest to the patient had it."""
    support: int
    """Rows of the whole cohort that have it."""


LABELS_OF_VOICES = {"model": "the general model alone", "council": "the council", "trees": "boosted trees"}


@dataclass(frozen=True)
class Voice:
    """One predictor of the same rows at the same T + 1 points, knowing the same; see voices.py."""

    name: str
    loss: tuple[Estimate, ...]
    overall: Estimate
    """Log loss averaged over 0 … T tests."""
    scores: Mapping[str, tuple[Estimate, ...]]
    against_shown: Estimate
    """Its log loss minus that of the voice which step-throughs show, averaged over 0 … T tests, paired by row: below zero,
    it is better."""

    def label(self, kind: str) -> str:
        regression = "ridge regression" if kind == "continuous" else "logistic regression"
        return LABELS_OF_VOICES.get(self.name, regression)


@dataclass(frozen=True)
class DecisionCurve:
    """Who acts on all patients whose probability of one class is at least the threshold: true positives of each patient,
    minus false ones, weighted by the odds of the threshold. After up to T tests."""

    outcome: str
    """The class that is acted on."""
    thresholds: tuple[float, ...]
    benefit: Mapping[str, tuple[float, ...]]
    """Voice → net benefit at each threshold; "all": of acting on everybody. Acting on nobody has 0."""
    advantage: tuple[Estimate, ...]
    """Of the shown voice over the better one of all and nobody."""


@dataclass(frozen=True)
class Recalibrated:
    """The shown voice after T tests, recalibrated by what happened: shift and slope from all rows; the figures by
    cross-fitting, each fold by what happened in the others."""

    shift: tuple[float, ...]
    slope: float
    change: Estimate
    """In log loss: below zero, recalibrated is better."""
    calibration: Calibration


@dataclass(frozen=True)
class PatientGroup:
    """Calibration among some patients, after T tests."""

    feature: str
    group: str
    rows: int
    predicted: float
    observed: float
    low: float
    """Interval of `observed`, corrected for the number of groups."""
    high: float

    @property
    def is_off(self) -> bool:
        return not self.low <= self.predicted <= self.high


@dataclass(frozen=True)
class Figures:
    """All figures of one cohort under one model, as plain numbers."""

    kind: str
    outcome: str
    unit: str
    classes: tuple[str, ...]
    rows: int
    """Rows of the cohort."""
    asked: int
    patients: int
    """Patients that the asked rows belong to."""
    asked_by_class: tuple[int, ...]
    folds: int
    context_rows: int
    """Rows of the smallest context."""
    budget: int
    base: Estimate
    """Log loss of the base rate of the context."""
    curves: tuple[Curve, ...]
    differences: tuple[Difference, ...]
    voices: tuple[Voice, ...]
    """The general model alone first, then those heard beside it."""
    shown: str
    """The voice that step-throughs show: the council, where it has members."""
    over_base: Estimate
    """The shown voice's log loss after all tests minus the base rate's."""
    calibration: tuple[Calibration, ...]
    """Of the shown voice after 0, 1, … T tests."""
    recalibrated: Recalibrated | None
    """None for a continuous outcome."""
    decisions_at: tuple[DecisionCurve, ...]
    """For two classes, of the positive one; of more, of each; none for a continuous outcome."""
    groups: tuple[PatientGroup, ...]
    """Of the shown voice: for two classes the positive one's probability, for more the likeliest's; else the mean."""
    actions: tuple[str, ...]
    """Tests in the cohort's order; a panel under its own name."""
    chosen: tuple[tuple[float, ...], ...]
    """(T, tests) share of the patients for whom the model's order took the test at that step."""
    finished: tuple[float, ...]
    """(T,) share of the patients who had nothing left to ask at that step."""
    fixed_orders: tuple[tuple[str, ...], ...]
    """The best fixed order of each fold's context."""
    unjudged: tuple[tuple[str, ...], ...]
    """Tests that too few rows of each fold's context have for a position in its fixed order."""
    unfounded: float
    """Share of the patients asked on whom the model's order, or the fixed one, took such a test; all patients of a fold
    whose order has no other."""
    wishes: tuple[Positivity, ...]
    tuned: Literal["", "here", "elsewhere"] = ""
    """Where the model was fine-tuned: nowhere, on this very cohort, or on another, which may hold the same patients."""
    areas_pooled: bool = False
    """Whether the AUROC compares patients of different folds too, as evidence of earlier versions does."""

    @property
    def shown_voice(self) -> Voice:
        return next(voice for voice in self.voices if voice.name == self.shown)

    @property
    def best_conventional(self) -> Voice | None:
        """The best of the regression and the trees."""
        conventional = [voice for voice in self.voices if voice.name in ("regression", "trees")]
        return min(conventional, key=lambda voice: voice.overall.value, default=None)

    @property
    def curve(self) -> Curve:
        return self.curves[0]

    @property
    def decisions(self) -> int:
        return sum(wish.wished for wish in self.wishes)

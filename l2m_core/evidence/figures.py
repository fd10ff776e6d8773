"""From the answers of all folds to figures: plain numbers that can be stored, drawn and read again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from l2m_core.cohort import Cohort
from l2m_core.evidence.estimates import Bootstrap, Estimate, share_interval, weighted_auroc
from l2m_core.evidence.fold_answers import FIXED, LEVELS, MODEL, FoldAnswers, orders_for
from l2m_core.evidence.folds import EvidenceSettings, Plan
from l2m_core.evidence.orders import actions_of
from l2m_core.metrics import ece, ece_if_calibrated, reliability
from l2m_core.step_through.patient import FEWEST_NEAR

FORMAT = 2  # 1 had fixed orders whose tests may not have been judged, and did not say so
BINS = 10
CHANCE_DRAWS = 50


@dataclass(frozen=True)
class Curve:
    """One order, T + 1 moments: before any test, and after each. `scores`: auroc; or crps and rmse."""

    order: str
    tests: tuple[float, ...]
    """Mean number of tests taken: rows that have no more to ask stay where they are."""
    cost: tuple[float, ...]
    loss: tuple[Estimate, ...]
    scores: Mapping[str, tuple[Estimate, ...]]


@dataclass(frozen=True)
class Difference:
    """The model's order minus another, in log loss, row by row: below zero, the model's order is better."""

    order: str
    overall: Estimate
    """Averaged over 0 … T tests."""
    by_step: tuple[Estimate, ...]


@dataclass(frozen=True)
class Calibration:
    """At one moment in the model's order. Classes: predicted and observed shares of each bin. Continuous: nominal and
    observed coverage of central intervals. error: their mean distance; by_chance: what perfect predictions would show.
    """

    tests: int
    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    count: tuple[int, ...]
    error: float
    by_chance: float


@dataclass(frozen=True)
class Wishes:
    """Positivity: how often the model asked for a test first, and how often that had been recorded."""

    action: str
    wished: int
    recorded: int
    thin: int
    """… and how often fewer than ten of the context rows nearest to the patient had it."""
    support: int
    """Rows of the whole cohort that have it."""


@dataclass(frozen=True)
class Evidence:
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
    over_base: Estimate
    """The model's log loss after all tests minus the base rate's."""
    over_start: Estimate
    """The model's log loss after all tests minus before any."""
    calibration: tuple[Calibration, ...]
    """At each moment."""
    actions: tuple[str, ...]
    """Tests in the cohort's order; a panel under its own name."""
    chosen: tuple[tuple[float, ...], ...]
    """(T, tests) share of the patients for whom the model's order took the test at that step."""
    finished: tuple[float, ...]
    """(T,) share of the patients who had nothing left to ask at that step."""
    fixed_orders: tuple[tuple[str, ...], ...]
    """The best fixed order of each fold's context."""
    unjudged: tuple[tuple[str, ...], ...]
    """Tests that too few rows of each fold's context have to be given a place in its fixed order."""
    unfounded: float
    """Share of the patients asked on whom the model's order, or the fixed one, took such a test; all patients of a fold
    whose order has no other."""
    wishes: tuple[Wishes, ...]

    @property
    def curve(self) -> Curve:
        return self.curves[0]

    @property
    def decisions(self) -> int:
        return sum(wish.wished for wish in self.wishes)

    def summary(self) -> tuple[Any, ...]:
        """What the figures say, in sentences with a verdict each."""
        from l2m_core.evidence.sentences import sentences

        return sentences(self)

    def text(self) -> str:
        from l2m_core.evidence.sentences import report

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


def summarise(cohort: Cohort, plan: Plan, settings: EvidenceSettings, answers: Sequence[FoldAnswers]) -> Evidence:
    rows = np.concatenate([answer.rows for answer in answers])
    y = cohort.y[rows]
    patient = np.unique(plan.patient[rows], return_inverse=True)[1].reshape(-1)
    bootstrap = Bootstrap(patient, settings.draws, settings.seed)
    loss = np.concatenate([answer.loss for answer in answers], 1)  # (O, n, T + 1)
    cost = np.concatenate([answer.cost for answer in answers], 1)
    actions = np.concatenate([answer.actions for answer in answers], 1)
    base = np.concatenate([answer.base for answer in answers])
    names = orders_for(cohort)
    known = actions_of(cohort)
    model_loss = loss[0]
    ends = bootstrap.mean(np.stack([base, model_loss[:, -1] - base, model_loss[:, -1] - model_loss[:, 0]], 1))
    taken = np.concatenate([np.zeros((*actions.shape[:2], 1)), (actions >= 0).cumsum(2)], 2)
    curves = tuple(
        Curve(
            name,
            _floats(taken[o].mean(0)),
            _floats(cost[o].mean(0)),
            tuple(bootstrap.mean(loss[o])),
            _scores(answers, o, y, bootstrap),
        )
        for o, name in enumerate(names)
    )
    differences = []
    for o, name in list(enumerate(names))[1:]:
        by_step = model_loss - loss[o]
        overall, *each = bootstrap.mean(np.column_stack([by_step.mean(1), by_step]))
        differences.append(Difference(name, overall, tuple(each)))
    budget = actions.shape[2]
    classes = np.bincount(y, minlength=cohort.n_classes) if cohort.kind != "continuous" else ()
    return Evidence(
        kind=cohort.kind,
        outcome=cohort.schema.outcome.name,
        unit=cohort.schema.outcome.unit,
        classes=cohort.classes,
        rows=len(cohort),
        asked=len(rows),
        patients=int(patient.max()) + 1,
        asked_by_class=tuple(int(count) for count in classes),
        folds=plan.folds,
        context_rows=min(len(plan.context(fold)) for fold in range(plan.folds)),
        budget=budget,
        base=ends[0],
        curves=curves,
        differences=tuple(differences),
        over_base=ends[1],
        over_start=ends[2],
        calibration=tuple(_calibration(answers, t, y, settings) for t in range(budget + 1)),
        actions=tuple(action_name(cohort, action) for action in known),
        chosen=tuple(tuple(float((actions[0, :, t] == action).mean()) for action in known) for t in range(budget)),
        finished=_floats((actions[0] < 0).mean(0)),
        fixed_orders=tuple(tuple(action_name(cohort, int(a)) for a in answer.order[:budget]) for answer in answers),
        unjudged=tuple(tuple(action_name(cohort, int(a)) for a in answer.unjudged) for answer in answers),
        unfounded=float(np.concatenate([_is_unfounded(answer, names) for answer in answers]).mean()),
        wishes=_wishes(cohort, answers, known),
    )


def action_name(cohort: Cohort, action: int) -> str:
    feature = cohort.features[action]
    return feature.group if feature.group is not None and len(actions_of(cohort)[action]) > 1 else feature.name


def _is_unfounded(answer: FoldAnswers, names: Sequence[str]) -> np.ndarray:
    """(n,) whether the comparison with the fixed order hangs on a test that could not be judged."""
    if len(answer.unjudged) == len(answer.order):
        return np.ones(len(answer.rows), dtype=bool)
    compared = answer.actions[[names.index(MODEL), names.index(FIXED)]]  # (2, n, T)
    return np.asarray(np.isin(compared, answer.unjudged).any((0, 2)))


def _scores(answers, o: int, y: np.ndarray, bootstrap: Bootstrap) -> dict[str, tuple[Estimate, ...]]:
    if answers[0].p.size:
        p = np.concatenate([answer.p[o] for answer in answers]).astype(np.float64)  # (n, T + 1, K)
        moments = range(p.shape[1])
        return {
            "auroc": tuple(bootstrap.estimate(lambda w: np.stack([weighted_auroc(p[:, t], y, w) for t in moments], 1)))
        }
    crps = np.concatenate([answer.crps[o] for answer in answers]).astype(np.float64)
    mean = np.concatenate([answer.mean[o] for answer in answers]).astype(np.float64)
    square = (mean - y[:, None]) ** 2
    root = bootstrap.estimate(lambda w: np.sqrt(w @ square / w.sum(1, keepdims=True)))
    return {"crps": tuple(bootstrap.mean(crps)), "rmse": tuple(root)}


def _calibration(answers, t: int, y: np.ndarray, settings: EvidenceSettings) -> Calibration:
    generator = np.random.default_rng([settings.seed, 5, t])
    if answers[0].p.size:
        p = np.concatenate([answer.p[0, :, t] for answer in answers]).astype(np.float64)
        points = reliability(p, y, BINS)
        low, high = share_interval(points.observed * points.count, points.count)
        return Calibration(
            t,
            _floats(points.predicted),
            _floats(points.observed),
            _floats(low),
            _floats(high),
            tuple(int(count) for count in points.count),
            ece(p, y, BINS),
            ece_if_calibrated(p, generator, BINS, draws=CHANCE_DRAWS),
        )
    covered = np.concatenate([answer.covered[:, t] for answer in answers])  # (n, L)
    n, observed = len(covered), covered.mean(0)
    low, high = share_interval(covered.sum(0), np.full(len(LEVELS), n))
    depth = generator.random((CHANCE_DRAWS, n, 1))
    chance = np.abs((depth < LEVELS).mean(1) - LEVELS).mean()
    return Calibration(
        t,
        _floats(LEVELS),
        _floats(observed),
        _floats(low),
        _floats(high),
        (n,) * len(LEVELS),
        float(np.abs(observed - LEVELS).mean()),
        float(chance),
    )


def _wishes(cohort: Cohort, answers, known: Mapping[int, np.ndarray]) -> tuple[Wishes, ...]:
    rows = np.concatenate([answer.rows for answer in answers])
    wish = np.concatenate([answer.wish for answer in answers])
    near = np.concatenate([answer.wish_near for answer in answers])
    found = []
    for action, members in known.items():
        asked = wish == action
        recorded = cohort.r[rows][:, members].any(1)[:, None]
        thin = asked & (near < FEWEST_NEAR)
        found.append(
            Wishes(
                action_name(cohort, action),
                int(asked.sum()),
                int((asked & recorded).sum()),
                int(thin.sum()),
                int(cohort.r[:, members].any(1).sum()),
            )
        )
    return tuple(found)


def _floats(values) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


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
        return tuple(Wishes(**wish) for wish in value)
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

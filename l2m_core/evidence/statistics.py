"""From the answers of all folds to figures with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from l2m_core.acquire.support import are_few
from l2m_core.cohort import Cohort
from l2m_core.evidence.bootstrap import Bootstrap, Estimate, weighted_auroc, wilson_interval
from l2m_core.evidence.clustering import Clustering
from l2m_core.evidence.figures import (
    Calibration,
    Curve,
    DecisionCurve,
    Difference,
    Positivity,
    Recalibrated,
    Voice,
)
from l2m_core.evidence.fixed_order import actions_of
from l2m_core.evidence.fold_answers import FIXED, MODEL, FoldAnswers, orders_for
from l2m_core.evidence.folds import EvidenceSettings, Plan
from l2m_core.evidence.groups import calibration_of_groups, groups_of
from l2m_core.evidence.recalibration import cross_fitted, recalibration
from l2m_core.evidence.results import Evidence
from l2m_core.evidence.voices import COUNCIL, LEVELS
from l2m_core.metrics import alike, confidence, ece, ece_if_calibrated, net_benefit, reliability, row_losses

BINS = 10
THRESHOLDS = np.arange(1, 100) / 100  # of a decision to act
CHANCE_DRAWS = 50


def summarise(cohort: Cohort, plan: Plan, settings: EvidenceSettings, answers: Sequence[FoldAnswers]) -> Evidence:
    """All figures of the cohort, from the answers of its folds."""
    rows = np.concatenate([answer.rows for answer in answers])
    y = cohort.y[rows]
    patient = np.unique(plan.patient[rows], return_inverse=True)[1].reshape(-1)
    bootstrap = Bootstrap(patient, settings.draws, settings.seed)
    loss = np.concatenate([answer.loss for answer in answers], 1)  # (O, n, T + 1), the model's own order first
    actions = np.concatenate([answer.actions for answer in answers], 1)  # (O, n, T)
    base = np.concatenate([answer.base for answer in answers])
    names = orders_for(cohort)
    members = actions_of(cohort)
    heard = HeardVoices.of(answers)
    base_rate, over_base = bootstrap.mean(np.stack([base, heard.shown_loss[:, -1] - base], 1))
    groups = groups_of(cohort, rows)
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
        base=base_rate,
        curves=_curves(answers, names, y, plan.fold[rows], bootstrap),
        differences=tuple(_difference(name, loss[0] - loss[o], bootstrap) for o, name in enumerate(names) if o),
        voices=_voices(heard, y, plan.fold[rows], bootstrap),
        shown=heard.names[heard.shown],
        over_base=over_base,
        calibration=tuple(_calibration(heard, t, y, patient, settings) for t in range(budget + 1)),
        recalibrated=_recalibrated(heard, y, plan.fold[rows], bootstrap, settings),
        decisions_at=_decisions(heard, y, cohort, bootstrap),
        groups=calibration_of_groups(groups, *_predicted_and_observed(heard, y), patient, is_share=bool(heard.p.size)),
        actions=tuple(action_name(cohort, action) for action in members),
        chosen=tuple(tuple(float((actions[0, :, t] == action).mean()) for action in members) for t in range(budget)),
        finished=_floats((actions[0] < 0).mean(0)),
        fixed_orders=tuple(tuple(action_name(cohort, int(a)) for a in answer.order[:budget]) for answer in answers),
        unjudged=tuple(tuple(action_name(cohort, int(a)) for a in answer.unjudged) for answer in answers),
        unfounded=float(np.concatenate([_is_unfounded(answer, names) for answer in answers]).mean()),
        wishes=_positivity(cohort, answers, members),
    )


def _curves(
    answers: Sequence[FoldAnswers], names: Sequence[str], y: np.ndarray, fold: np.ndarray, bootstrap: Bootstrap
) -> tuple[Curve, ...]:
    loss, cost, actions = (
        np.concatenate([getattr(answer, name) for answer in answers], 1) for name in ("loss", "cost", "actions")
    )
    taken = np.concatenate([np.zeros((*actions.shape[:2], 1)), (actions >= 0).cumsum(2)], 2)  # (O, n, T + 1)
    return tuple(
        Curve(
            name,
            _floats(taken[o].mean(0)),
            _floats(cost[o].mean(0)),
            tuple(bootstrap.mean(loss[o])),
            _scores(_of_order(answers, o), y, fold, bootstrap),
        )
        for o, name in enumerate(names)
    )


def _difference(order: str, by_row: np.ndarray, bootstrap: Bootstrap) -> Difference:
    """by_row: (n, T + 1) the model's loss minus that of the other order."""
    overall, *by_step = bootstrap.mean(np.column_stack([by_row.mean(1), by_row]))
    return Difference(order, overall, tuple(by_step))


def action_name(cohort: Cohort, action: int) -> str:
    feature = cohort.features[action]
    return feature.group if feature.group is not None and len(actions_of(cohort)[action]) > 1 else feature.name


def _is_unfounded(answer: FoldAnswers, names: Sequence[str]) -> np.ndarray:
    """(n,) whether the comparison with the fixed order hangs on a test that could not be judged."""
    if len(answer.unjudged) == len(answer.order):
        return np.ones(len(answer.rows), dtype=bool)
    compared = answer.actions[[names.index(MODEL), names.index(FIXED)]]  # (2, n, T)
    return np.asarray(np.isin(compared, answer.unjudged).any((0, 2)))


@dataclass(frozen=True)
class HeardVoices:
    """The voices of all folds, without a council that is the model alone everywhere. Shapes as in FoldAnswers."""

    names: tuple[str, ...]
    loss: np.ndarray
    p: np.ndarray
    mean: np.ndarray
    crps: np.ndarray
    covered: np.ndarray

    @classmethod
    def of(cls, answers: Sequence[FoldAnswers]) -> HeardVoices:
        has_council = any(answer.has_council for answer in answers)
        names = [str(name) for name in answers[0].voices]
        kept = [number for number, name in enumerate(names) if name != COUNCIL or has_council]

        def joined(name: str) -> np.ndarray:
            parts = [getattr(answer, f"voice_{name}") for answer in answers]
            return np.concatenate([part[kept] for part in parts], 1) if parts[0].size else parts[0]

        return cls(tuple(names[number] for number in kept), *map(joined, ("loss", "p", "mean", "crps", "covered")))

    @property
    def shown(self) -> int:
        """The number of the voice that step-throughs show."""
        return self.names.index(COUNCIL) if COUNCIL in self.names else 0

    @property
    def shown_loss(self) -> np.ndarray:
        """(n, T + 1)"""
        return np.asarray(self.loss[self.shown])


def _voices(heard: HeardVoices, y: np.ndarray, fold: np.ndarray, bootstrap: Bootstrap) -> tuple[Voice, ...]:
    found = []
    for number, name in enumerate(heard.names):
        loss = heard.loss[number]
        overall, against = bootstrap.mean(np.stack([loss.mean(1), (loss - heard.shown_loss).mean(1)], 1))
        scores = _scores(_of_voice(heard, number), y, fold, bootstrap)
        found.append(Voice(name, tuple(bootstrap.mean(loss)), overall, scores, against))
    return tuple(found)


def _predicted_and_observed(heard: HeardVoices, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) of the shown voice after all tests: a probability and whether it happened; or the mean and the outcome."""
    if heard.p.size:
        return confidence(heard.p[heard.shown, :, -1].astype(np.float64), y)
    return heard.mean[heard.shown, :, -1].astype(np.float64), y.astype(np.float64)


def _recalibrated(
    heard: HeardVoices, y: np.ndarray, fold: np.ndarray, bootstrap: Bootstrap, settings: EvidenceSettings
) -> Recalibrated | None:
    if not heard.p.size:
        return None
    p = heard.p[heard.shown, :, -1].astype(np.float64)
    whole, after = recalibration(p, y), cross_fitted(p, y, fold)
    (change,) = bootstrap.mean((row_losses(after, y) - row_losses(p, y))[:, None])
    generator = np.random.default_rng([settings.seed, 7])
    return Recalibrated(
        whole.shift,
        whole.slope,
        change,
        _calibration_of(after, y, bootstrap.patient, heard.loss.shape[2] - 1, generator),
    )


def _decisions(heard: HeardVoices, y: np.ndarray, cohort: Cohort, bootstrap: Bootstrap) -> tuple[DecisionCurve, ...]:
    if not heard.p.size:
        return ()
    return tuple(_decision(heard, y, code, cohort.classes[code], bootstrap) for code in _acted_on(cohort))


def _acted_on(cohort: Cohort) -> range:
    return range(1, 2) if cohort.kind == "binary" else range(cohort.n_classes)


def _decision(heard: HeardVoices, y: np.ndarray, code: int, name: str, bootstrap: Bootstrap) -> DecisionCurve:
    happened = y == code
    everybody = np.ones(len(y))
    benefit = {
        voice: _floats(net_benefit(heard.p[number, :, -1, code], happened, THRESHOLDS))
        for number, voice in enumerate(heard.names)
    }
    shown = heard.p[heard.shown, :, -1, code]

    def advantage(weights: np.ndarray) -> np.ndarray:
        of_all = net_benefit(everybody, happened, THRESHOLDS, weights)
        return net_benefit(shown, happened, THRESHOLDS, weights) - np.maximum(of_all, 0.0)

    benefit["all"] = _floats(net_benefit(everybody, happened, THRESHOLDS))
    return DecisionCurve(name, _floats(THRESHOLDS), benefit, tuple(bootstrap.estimate(advantage)))


Scored = np.ndarray | tuple[np.ndarray, np.ndarray]
"""p (n, T + 1, K); or mean and crps, both (n, T + 1)."""


def _of_order(answers: Sequence[FoldAnswers], o: int) -> Scored:
    if answers[0].p.size:
        return np.concatenate([answer.p[o] for answer in answers])
    return np.concatenate([answer.mean[o] for answer in answers]), np.concatenate(
        [answer.crps[o] for answer in answers]
    )


def _of_voice(heard: HeardVoices, number: int) -> Scored:
    if heard.p.size:
        return np.asarray(heard.p[number])
    return heard.mean[number], heard.crps[number]


def _scores(
    predicted: Scored, y: np.ndarray, fold: np.ndarray, bootstrap: Bootstrap
) -> dict[str, tuple[Estimate, ...]]:
    if isinstance(predicted, np.ndarray):
        each = predicted.astype(np.float64).swapaxes(0, 1)  # (T + 1, n, K)
        areas = bootstrap.estimate(lambda w: np.stack([weighted_auroc(at, y, w, fold) for at in each], 1))
        return {"auroc": tuple(areas)}
    mean, crps = predicted
    square = (mean.astype(np.float64) - y[:, None]) ** 2
    root = bootstrap.estimate(lambda w: np.sqrt(w @ square / w.sum(1, keepdims=True)))
    return {"crps": tuple(bootstrap.mean(crps.astype(np.float64))), "rmse": tuple(root)}


def _calibration(
    heard: HeardVoices, t: int, y: np.ndarray, patient: np.ndarray, settings: EvidenceSettings
) -> Calibration:
    """Of the shown voice after t tests."""
    generator = np.random.default_rng([settings.seed, 5, t])
    if heard.p.size:
        return _calibration_of(heard.p[heard.shown, :, t].astype(np.float64), y, patient, t, generator)
    covered = heard.covered[heard.shown, :, t]  # (n, L)
    n, observed = len(covered), covered.mean(0)
    clustering = Clustering.of(patient, covered)
    worth = clustering.worth(np.ones(n, dtype=bool))
    low, high = wilson_interval(observed * worth, np.full(len(LEVELS), worth))
    # The level of the narrowest central interval that covers an outcome is uniform under perfect calibration.
    uniform = np.stack([alike(patient, clustering.correlation, generator) for _ in range(CHANCE_DRAWS)])[..., None]
    chance = np.abs((uniform < LEVELS).mean(1) - LEVELS).mean()
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


def _calibration_of(
    p: np.ndarray, y: np.ndarray, patient: np.ndarray, t: int, generator: np.random.Generator
) -> Calibration:
    """p: (n, K)"""
    points = reliability(p, y, BINS)
    probability, happened = confidence(p, y)
    clustering = Clustering.of(patient, happened - probability)
    worth = np.array([clustering.worth(points.point == number) for number in range(len(points.count))])
    low, high = wilson_interval(points.observed * worth, worth)
    return Calibration(
        t,
        _floats(points.predicted),
        _floats(points.observed),
        _floats(low),
        _floats(high),
        tuple(int(count) for count in points.count),
        ece(p, y, BINS),
        ece_if_calibrated(p, generator, BINS, draws=CHANCE_DRAWS, rows=patient, correlation=clustering.correlation),
    )


def _positivity(cohort: Cohort, answers, actions: Mapping[int, np.ndarray]) -> tuple[Positivity, ...]:
    rows = np.concatenate([answer.rows for answer in answers])
    wish = np.concatenate([answer.wish for answer in answers])
    near = np.concatenate([answer.wish_near for answer in answers])
    found = []
    for action, members in actions.items():
        asked = wish == action
        recorded = cohort.r[rows][:, members].any(1)[:, None]
        thin = asked & are_few(near)
        found.append(
            Positivity(
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

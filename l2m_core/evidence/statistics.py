"""From the answers of all folds to figures with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from l2m_core.acquire.support import FEWEST_NEAR
from l2m_core.cohort import Cohort
from l2m_core.evidence.bootstrap import Bootstrap, Estimate, weighted_auroc, wilson_interval
from l2m_core.evidence.figures import Calibration, Curve, Difference, Positivity
from l2m_core.evidence.fixed_order import actions_of
from l2m_core.evidence.fold_answers import FIXED, LEVELS, MODEL, FoldAnswers, orders_for
from l2m_core.evidence.folds import EvidenceSettings, Plan
from l2m_core.evidence.results import Evidence
from l2m_core.metrics import ece, ece_if_calibrated, reliability

BINS = 10
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
    first, last = loss[0, :, 0], loss[0, :, -1]
    base_rate, over_base, over_start = bootstrap.mean(np.stack([base, last - base, last - first], 1))
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
        curves=_curves(answers, names, y, bootstrap),
        differences=tuple(_difference(name, loss[0] - loss[o], bootstrap) for o, name in enumerate(names) if o),
        over_base=over_base,
        over_start=over_start,
        calibration=tuple(_calibration(answers, t, y, settings) for t in range(budget + 1)),
        actions=tuple(action_name(cohort, action) for action in members),
        chosen=tuple(tuple(float((actions[0, :, t] == action).mean()) for action in members) for t in range(budget)),
        finished=_floats((actions[0] < 0).mean(0)),
        fixed_orders=tuple(tuple(action_name(cohort, int(a)) for a in answer.order[:budget]) for answer in answers),
        unjudged=tuple(tuple(action_name(cohort, int(a)) for a in answer.unjudged) for answer in answers),
        unfounded=float(np.concatenate([_is_unfounded(answer, names) for answer in answers]).mean()),
        wishes=_positivity(cohort, answers, members),
    )


def _curves(
    answers: Sequence[FoldAnswers], names: Sequence[str], y: np.ndarray, bootstrap: Bootstrap
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
            _scores(answers, o, y, bootstrap),
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


def _scores(answers, o: int, y: np.ndarray, bootstrap: Bootstrap) -> dict[str, tuple[Estimate, ...]]:
    if answers[0].p.size:
        p = np.concatenate([answer.p[o] for answer in answers]).astype(np.float64)  # (n, T + 1, K)
        steps = range(p.shape[1])
        return {
            "auroc": tuple(bootstrap.estimate(lambda w: np.stack([weighted_auroc(p[:, t], y, w) for t in steps], 1)))
        }
    crps = np.concatenate([answer.crps[o] for answer in answers]).astype(np.float64)
    mean = np.concatenate([answer.mean[o] for answer in answers]).astype(np.float64)
    square = (mean - y[:, None]) ** 2
    root = bootstrap.estimate(lambda w: np.sqrt(w @ square / w.sum(1, keepdims=True)))
    return {"crps": tuple(bootstrap.mean(crps)), "rmse": tuple(root)}


def _calibration(answers, t: int, y: np.ndarray, settings: EvidenceSettings) -> Calibration:
    """After t tests in the model's order."""
    generator = np.random.default_rng([settings.seed, 5, t])
    if answers[0].p.size:
        p = np.concatenate([answer.p[0, :, t] for answer in answers]).astype(np.float64)
        points = reliability(p, y, BINS)
        low, high = wilson_interval(points.observed * points.count, points.count)
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
    low, high = wilson_interval(covered.sum(0), np.full(len(LEVELS), n))
    # The level of the narrowest central interval that covers an outcome is uniform under perfect calibration.
    uniform = generator.random((CHANCE_DRAWS, n, 1))
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


def _positivity(cohort: Cohort, answers, actions: Mapping[int, np.ndarray]) -> tuple[Positivity, ...]:
    rows = np.concatenate([answer.rows for answer in answers])
    wish = np.concatenate([answer.wish for answer in answers])
    near = np.concatenate([answer.wish_near for answer in answers])
    found = []
    for action, members in actions.items():
        asked = wish == action
        recorded = cohort.r[rows][:, members].any(1)[:, None]
        thin = asked & (near < FEWEST_NEAR)
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

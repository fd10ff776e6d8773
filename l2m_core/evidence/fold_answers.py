"""One fold of cross-fitting: its patients stepped through in every order, by a model that has read the other folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from l2m_core.acquire.policies import FixedOrder, GainPerCost, Policy, PolicyMethod, RandomOrder, make_policy
from l2m_core.acquire.rollout import Rollout, roll_out_on
from l2m_core.acquire.support import count_near, nearest_rows
from l2m_core.answering.batching import QueryBatcher
from l2m_core.answering.engine import ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.cohort import Cohort
from l2m_core.errors import RangeWarning
from l2m_core.evidence.fixed_order import actions_of, best_fixed_order
from l2m_core.evidence.folds import EvidenceSettings, Plan
from l2m_core.evidence.voices import hear, known_at, measured
from l2m_core.memory import L2M, CohortMemory
from l2m_core.metrics import row_crps, row_losses

MODEL, RANDOM, FIXED, PER_COST = "model", "random", "fixed", "model per cost"
MOST_KEPT = 16384  # answers of a fold: its patients are asked about again, with what they lack and in another order

Report = Callable[[float], None]


@dataclass(frozen=True)
class FoldAnswers:
    """Plain arrays, so that they can be stored. O orders, T + 1 points (before any test, after each), n rows of the fold,
    K classes, L levels. For classes p is filled; for a continuous outcome the last three are.
    """

    rows: np.ndarray
    """(n,) rows of the cohort."""
    loss: np.ndarray
    """(O, n, T + 1) nats."""
    cost: np.ndarray
    """(O, n, T + 1) spent so far."""
    actions: np.ndarray
    """(O, n, T) first feature of each action, -1 where nothing was left to ask."""
    base: np.ndarray
    """(n,) loss of the context's base rate."""
    wish: np.ndarray
    """(n, T) the test that the model would take if every test had been recorded; -1 where it took none."""
    wish_near: np.ndarray
    """(n, T) context rows near the patient with that test recorded."""
    order: np.ndarray
    """(m,) the best fixed order of the context."""
    unjudged: np.ndarray
    """(u,) tests at its end that too few context rows have: they stand in the order of the columns."""
    voices: np.ndarray
    """(V,) names, the general model alone first: who was heard in the order of what step-throughs show."""
    has_council: np.ndarray
    """() bool: whether the fold's council says anything but the model alone."""
    voice_loss: np.ndarray
    """(V, n, T + 1) nats; p, mean, crps and covered of the voices follow the same order."""
    voice_p: np.ndarray
    voice_mean: np.ndarray
    voice_crps: np.ndarray
    voice_covered: np.ndarray
    """(V, n, T + 1, L): whether the central interval of each level covers the outcome."""
    p: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0, 0), dtype=np.float32))
    """(O, n, T + 1, K)"""
    mean: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=np.float32))
    """(O, n, T + 1)"""
    crps: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=np.float32))
    """(O, n, T + 1)"""

    def arrays(self) -> dict[str, np.ndarray]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


def orders_for(cohort: Cohort) -> tuple[str, ...]:
    """The model's order by gain per cost is a fourth one only where tests differ in cost."""
    costs = {float(cohort.costs[action]) for action in actions_of(cohort)}
    return (MODEL, RANDOM, FIXED, *([PER_COST] if len(costs) > 1 else []))


def ask_fold(
    model: L2M, cohort: Cohort, plan: Plan, settings: EvidenceSettings, fold: int, report: Report = lambda share: None
) -> FoldAnswers:
    """report: called with the share of the fold that is done; an error that it raises ends the work."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # of contexts that are a part of a cohort checked as a whole
        return _ask_fold(model, cohort, plan, settings, fold, report)


def _ask_fold(
    model: L2M, cohort: Cohort, plan: Plan, settings: EvidenceSettings, fold: int, report: Report
) -> FoldAnswers:
    rows, others = plan.asked_of(fold), plan.context(fold)
    x, y, context = cohort.x[rows], cohort.y[rows], cohort.rows(others)
    budget = min(settings.budget, len(actions_of(cohort)))
    report(0.0)
    # Patients of the context alone, numbered from 0 again.
    patient = np.unique(plan.patient[others], return_inverse=True)[1].reshape(-1)
    generator = np.random.default_rng([settings.seed, 2, fold])
    # Before the whole context is read, so that the memories of its parts have been freed by then.
    order, unjudged = best_fixed_order(model, context, patient, budget, generator, lambda share: report(0.2 * share))
    report(0.2)
    memory = _as_in_step_throughs(model.condition(context), settings, lambda: report(0.3))
    shares = iter(np.linspace(0.35, 0.9, len(orders_for(cohort)) * budget))
    methods = [
        UnblockedChoices(memory, PolicyMethod(memory, policy), lambda: report(next(shares, 0.9)), name == MODEL)
        for name, policy in _policies(cohort, settings, fold, order).items()
    ]
    rollouts = [roll_out_on(cohort, method, x, budget=budget, y=y) for method in methods]
    heard = hear(
        memory,
        x,
        known_at(cohort, x, _to_actions(rollouts[0].actions, cohort), actions_of(cohort)),
        list(rollouts[0].predictions),  # type: ignore[arg-type]
        settings.council,
        settings.conventional,
        settings.seed,
        lambda: report(0.95),
    )
    measures = measured(list(heard.values()), y)
    report(1.0)
    return FoldAnswers(
        rows=rows,
        base=_base_losses(context, y),
        order=np.array(order, dtype=np.int64),
        unjudged=np.array(unjudged, dtype=np.int64),
        voices=np.array(list(heard)),
        has_council=np.array(memory.council is not None),
        voice_loss=measures.loss,
        voice_p=measures.p,
        voice_mean=measures.mean,
        voice_crps=measures.crps,
        voice_covered=measures.covered,
        **_steps(rollouts, cohort),
        **_wishes(methods[0], rollouts[0], cohort),
        **_predictions(rollouts, y),
    )


def _as_in_step_throughs(memory: CohortMemory, settings: EvidenceSettings, check: Callable[[], None]) -> CohortMemory:
    """With the council of these rows, if it says anything but the model alone: gains, and so orders, are then the blend's. Its
    cache holds all answers of a fold."""
    memory = replace(memory, batcher=QueryBatcher(MOST_KEPT), prediction_batcher=QueryBatcher(MOST_KEPT))
    if not settings.council:
        return memory
    council = memory.fit_council(settings.seed, check)
    return memory if council.recipe.changes_nothing else memory.with_council(council)


def _policies(cohort: Cohort, settings: EvidenceSettings, fold: int, order: Sequence[int]) -> dict[str, Policy]:
    """Those of `orders_for`, the model's own first. order: the best fixed order, as actions."""
    actions = actions_of(cohort)
    every: dict[str, Policy] = {
        MODEL: make_policy(settings.policy),
        RANDOM: RandomOrder(int(np.random.default_rng([settings.seed, 3, fold]).integers(2**31))),
        FIXED: FixedOrder(tuple(cohort.names[member] for action in order for member in actions[action])),
        PER_COST: GainPerCost(),
    }
    return {name: every[name] for name in orders_for(cohort)}


class UnblockedChoices:
    """A method that chooses as a step-through does, and `notes` at every step the test it would take if every test had
    been recorded."""

    def __init__(
        self, memory: ConditionedModel, method: PolicyMethod, report_step: Callable[[], None], notes: bool
    ) -> None:
        self.memory, self.method, self.report_step, self.notes = memory, method, report_step, notes
        self.wishes: list[np.ndarray] = []
        """For each step (n,) the feature, -1 where none is left."""
        self.near: list[np.ndarray] = []
        """For each step (n,) context rows near the patient in which it was recorded."""

    def step(self, x: np.ndarray, a: np.ndarray):
        self.report_step()
        recorded = ~np.isnan(x)
        prediction, scores, gains = self.method.step(x, a, recorded)
        if not self.notes:
            return prediction, scores, gains
        # The same scores where all that is open was recorded; elsewhere those of before blocking.
        unblocked, lacks = scores.copy(), ((~recorded & ~a) & self.memory.cohort.acquirable).any(1)
        if lacks.any():
            unblocked[lacks] = self.method.step(x[lacks], a[lacks])[1]
        wish = np.where(np.isfinite(unblocked.max(1)), unblocked.argmax(1), -1)
        shown = np.where(a, x, np.nan).astype(np.float32)
        near = nearest_rows(self.memory, shown, count_near(len(self.memory.cohort)))
        self.wishes.append(wish)
        self.near.append(self.memory.cohort.r[near, np.maximum(wish, 0)[:, None]].sum(1))
        return prediction, scores, gains

    def predict(self, x: np.ndarray, a: np.ndarray):
        return self.method.predict(x, a)


def _to_actions(features: np.ndarray, cohort: Cohort) -> np.ndarray:
    """Features as actions: a feature of a panel becomes the panel's first one, and -1 stays -1."""
    first = {int(member): action for action, members in actions_of(cohort).items() for member in members}
    lookup = np.array([first.get(feature, -1) for feature in range(len(cohort.names))] + [-1])
    return lookup[features]


def _base_losses(context: Cohort, y: np.ndarray) -> np.ndarray:
    """(n,) log loss of the context's class frequencies, or of the normal distribution of its outcome."""
    if context.kind == "continuous":
        spread = float(context.y.std()) or 1.0
        standardised = (y.astype(np.float64) - float(context.y.mean())) / spread
        return 0.5 * standardised**2 + np.log(spread) + 0.5 * np.log(2 * np.pi)
    # A class that the context lacks gets the smallest probability that row_losses allows, not a loss of infinity.
    share = context.class_counts / len(context)
    return row_losses(np.tile(share, (len(y), 1)), y)


def _steps(rollouts: list[Rollout], cohort: Cohort) -> dict[str, np.ndarray]:
    """What each order asked, spent and lost."""
    return {
        "loss": np.stack([np.asarray(rollout.losses, dtype=np.float64) for rollout in rollouts]),
        "cost": np.stack([rollout.cost for rollout in rollouts]),
        "actions": np.stack([_to_actions(rollout.actions, cohort) for rollout in rollouts]),
    }


def _wishes(chosen: UnblockedChoices, rollout: Rollout, cohort: Cohort) -> dict[str, np.ndarray]:
    """What the model would have chosen counts only as long as the patient was still being asked."""
    wish, near = np.full(rollout.actions.shape, -1), np.zeros(rollout.actions.shape, dtype=np.int64)  # (n, T)
    if asked := len(chosen.wishes):  # steps, after which no patient was asked anything more
        took = rollout.actions[:, :asked] >= 0
        wish[:, :asked] = np.where(took, _to_actions(np.stack(chosen.wishes, 1), cohort), -1)
        near[:, :asked] = np.where(took, np.stack(chosen.near, 1), 0)
    return {"wish": wish, "wish_near": near}


def _predictions(rollouts: list[Rollout], y: np.ndarray) -> dict[str, np.ndarray]:
    if isinstance(rollouts[0].predictions[0], np.ndarray):
        return {"p": np.stack([np.stack(r.predictions, 1) for r in rollouts]).astype(np.float32)}  # type: ignore[arg-type]
    mean = [np.stack([prediction.mean for prediction in _predictives(r)], 1) for r in rollouts]
    crps = [np.stack([row_crps(prediction, y) for prediction in _predictives(r)], 1) for r in rollouts]
    return {"mean": np.stack(mean), "crps": np.stack(crps)}


def _predictives(rollout: Rollout) -> list[Predictive]:
    return [prediction for prediction in rollout.predictions if isinstance(prediction, Predictive)]

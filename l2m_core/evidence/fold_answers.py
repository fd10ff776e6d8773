"""One fold asked: its patients stepped through in every order, by a model that has read the other folds only."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields

import numpy as np

from l2m_core.acquire.policies import FixedOrder, GainPerCost, Guided, RandomOrder, make_policy, nearest_rows
from l2m_core.acquire.rollout import Rollout, roll_out_method
from l2m_core.answering.predictive import Predictive
from l2m_core.cohort import Cohort
from l2m_core.errors import RangeWarning
from l2m_core.evidence.folds import EvidenceSettings, Plan
from l2m_core.evidence.orders import actions_of, best_fixed_order
from l2m_core.memory import L2M, CohortMemory
from l2m_core.metrics import row_crps, row_losses
from l2m_core.step_through.patient import FEWEST_NEAR, NEAR_SHARE

MODEL, RANDOM, FIXED, CHEAP = "model", "random", "fixed", "model per cost"
LEVELS = np.round(np.arange(0.1, 0.95, 0.1), 1)  # nominal levels of central intervals, for a continuous outcome

Say = Callable[[float], None]


@dataclass(frozen=True)
class FoldAnswers:
    """Plain arrays, so that they can be kept and read again. O orders, T + 1 moments (before any test, after each),
    n patients of the fold, K classes, L levels. For classes p is filled; for a continuous outcome the last three are.
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
    """(n, T) what the model would have asked if everything could be had; -1 where it took no test."""
    wish_near: np.ndarray
    """(n, T) context rows near the patient with that test recorded."""
    order: np.ndarray
    """(m,) the best fixed order of the context."""
    unjudged: np.ndarray
    """(u,) tests at its end that too few context rows have: their places are those of the columns."""
    p: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0, 0), dtype=np.float32))
    """(O, n, T + 1, K)"""
    mean: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=np.float32))
    """(O, n, T + 1)"""
    crps: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=np.float32))
    """(O, n, T + 1)"""
    covered: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=bool))
    """(n, T + 1, L) in the model's order: whether the outcome fell into the central interval of each level."""

    def arrays(self) -> dict[str, np.ndarray]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


def orders_for(cohort: Cohort) -> tuple[str, ...]:
    """The model's order by gain per cost is a fourth one only where tests differ in cost."""
    costs = {float(cohort.costs[action]) for action in actions_of(cohort)}
    return (MODEL, RANDOM, FIXED, *([CHEAP] if len(costs) > 1 else []))


def ask_fold(
    model: L2M, cohort: Cohort, plan: Plan, settings: EvidenceSettings, fold: int, say: Say = lambda share: None
) -> FoldAnswers:
    """say: told the share of the fold that is done, now and then; what it raises ends the work."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # of contexts that are a part of a cohort checked as a whole
        return _ask_fold(model, cohort, plan, settings, fold, say)


def _ask_fold(model, cohort, plan, settings, fold, say) -> FoldAnswers:
    rows = plan.asked_of(fold)
    x, y = cohort.x[rows], cohort.y[rows]
    say(0.0)
    others = plan.context(fold)
    context = cohort.rows(others)
    actions = actions_of(cohort)
    budget = min(settings.budget, len(actions))
    patient = np.unique(plan.patient[others], return_inverse=True)[1].reshape(-1)
    generator = np.random.default_rng([settings.seed, 2, fold])
    # Before the whole context is read: the memories of its parts are gone by then.
    order, unjudged = best_fixed_order(model, context, patient, budget, generator, lambda share: say(0.5 * share))
    say(0.5)
    memory = model.condition(context)
    policies = {
        MODEL: make_policy(settings.policy),
        RANDOM: RandomOrder(int(np.random.default_rng([settings.seed, 3, fold]).integers(2**31))),
        FIXED: FixedOrder(tuple(cohort.names[member] for action in order for member in actions[action])),
        CHEAP: GainPerCost(),
    }
    names = orders_for(cohort)
    marks = iter(np.linspace(0.55, 1.0, len(names) * budget))
    rollouts, watched = [], None
    for name in names:
        method = Watched(memory, Guided(memory, policies[name]), lambda: say(next(marks, 1.0)))
        rollouts.append(
            roll_out_method(
                method,
                x,
                names=cohort.names,
                acquirable=cohort.acquirable,
                groups=cohort.groups,
                costs=cohort.costs,
                budget=budget,
                y=y,
            )
        )
        watched = watched or method
    assert watched is not None
    took = rollouts[0].actions >= 0
    return FoldAnswers(
        rows=rows,
        loss=np.stack([np.asarray(rollout.losses, dtype=np.float64) for rollout in rollouts]),
        cost=np.stack([rollout.cost for rollout in rollouts]),
        actions=np.stack([_to_actions(rollout.actions, cohort) for rollout in rollouts]),
        base=_base_losses(context, y),
        wish=np.where(took, _to_actions(np.stack(watched.wishes, 1), cohort), -1),
        wish_near=np.where(took, np.stack(watched.near, 1), 0),
        order=np.array(order, dtype=np.int64),
        unjudged=np.array(unjudged, dtype=np.int64),
        **_predictions(rollouts, y),
    )


class Watched:
    """A guided memory that notes what it would ask for if everything could be had."""

    def __init__(self, memory: CohortMemory, guided: Guided, look: Callable[[], None]) -> None:
        self.memory, self.guided, self.look = memory, guided, look
        self.wishes: list[np.ndarray] = []
        self.near: list[np.ndarray] = []

    def step(self, x: np.ndarray, a: np.ndarray):
        self.look()
        prediction, scores, gains = self.guided.step(x, a)
        wish = np.where(np.isfinite(scores.max(1)), scores.argmax(1), -1)
        count = max(FEWEST_NEAR, int(NEAR_SHARE * len(self.memory.cohort)))
        near = nearest_rows(self.memory, np.where(a, x, np.nan).astype(np.float32), count)
        self.wishes.append(wish)
        self.near.append(self.memory.cohort.r[near, np.maximum(wish, 0)[:, None]].sum(1))
        return prediction, scores, gains

    def predict(self, x: np.ndarray, a: np.ndarray):
        return self.guided.predict(x, a)


def _to_actions(features: np.ndarray, cohort: Cohort) -> np.ndarray:
    """Any feature of a panel → the panel's first one: a panel is one test, whichever feature it was taken for."""
    first = {int(member): action for action, members in actions_of(cohort).items() for member in members}
    lookup = np.array([first.get(feature, -1) for feature in range(len(cohort.names))] + [-1])
    return lookup[features]


def _base_losses(context: Cohort, y: np.ndarray) -> np.ndarray:
    if context.kind == "continuous":
        spread = float(context.y.std()) or 1.0
        standardised = (y.astype(np.float64) - float(context.y.mean())) / spread
        return 0.5 * standardised**2 + np.log(spread) + 0.5 * np.log(2 * np.pi)
    share = np.bincount(context.y, minlength=context.n_classes) / len(context)
    return row_losses(np.tile(share, (len(y), 1)), y)


def _predictions(rollouts: list[Rollout], y: np.ndarray) -> dict[str, np.ndarray]:
    if isinstance(rollouts[0].predictions[0], np.ndarray):
        return {"p": np.stack([np.stack(r.predictions, 1) for r in rollouts]).astype(np.float32)}  # type: ignore[arg-type]
    mean = [np.stack([prediction.mean for prediction in _predictives(r)], 1) for r in rollouts]
    crps = [np.stack([row_crps(prediction, y) for prediction in _predictives(r)], 1) for r in rollouts]
    covered = np.stack([_covered(prediction, y) for prediction in _predictives(rollouts[0])], 1)
    return {"mean": np.stack(mean), "crps": np.stack(crps), "covered": covered}


def _predictives(rollout: Rollout) -> list[Predictive]:
    return [prediction for prediction in rollout.predictions if isinstance(prediction, Predictive)]


def _covered(prediction: Predictive, y: np.ndarray) -> np.ndarray:
    """(n, L)"""
    return np.stack(
        [(y >= prediction.quantile((1 - level) / 2)) & (y <= prediction.quantile((1 + level) / 2)) for level in LEVELS],
        1,
    )

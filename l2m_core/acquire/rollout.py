"""Roll-outs of a policy on many rows at once, for bulk use and for every benchmark: one loop for all methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from l2m_core.acquire.policies import PolicyMethod, for_bulk, make_policy
from l2m_core.acquire.stopping import Stopping
from l2m_core.answering.engine import ConditionedModel
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError, InputError
from l2m_core.metrics import Distribution, row_losses


@dataclass(frozen=True)
class Rollout:
    """n rows, T steps."""

    names: tuple[str, ...]
    """Of the d features."""
    actions: np.ndarray
    """(n, T) the feature of each action; of a panel, the best-scored one that the row has; -1 where nothing was measured."""
    predictions: tuple[np.ndarray | Distribution, ...]
    """T + 1 of them, before any test and after each."""
    known: np.ndarray
    """(n, d) bool, at the end."""
    cost: np.ndarray
    """(n, T + 1) spent so far."""
    losses: np.ndarray | None = None
    """(n, T + 1) log loss at each step, where outcomes were given."""

    def __repr__(self) -> str:
        loss = "" if self.losses is None else f", mean log loss {self.mean_loss:.3g}"
        return "Rollout({:,} rows, {} steps{})".format(*self.actions.shape, loss)

    @property
    def mean_loss(self) -> float:
        """Mean log loss over patients and budgets 0 … T."""
        if self.losses is None:
            raise ValueError("This roll-out was made without outcomes; pass y to get log losses.")
        return float(self.losses.mean())

    def frame(self) -> pd.DataFrame:
        """One row for each patient and action: patient, step, feature, cost so far."""
        row, step = np.nonzero(self.actions >= 0)
        return pd.DataFrame(
            {
                "patient": row,
                "step": step + 1,
                "feature": [self.names[i] for i in self.actions[row, step]],
                "cost": self.cost[row, step + 1],
            }
        )


def roll_out(
    memory: ConditionedModel,
    x: np.ndarray,
    budget: int = 8,
    policy=None,
    y=None,
    start: np.ndarray | None = None,
    stopping: Stopping | None = None,
    **settings,
) -> Rollout:
    """L2M on complete (or partly complete) rows.

    y: (n,) outcomes, for log losses: numbers, or codes of classes (`cohort.encode_outcome`).
    start: (n, d) bool, what is known at first (default: baseline features).
    policy: by default the model's own, with the gain head for gains (see `for_bulk`).
    """
    method = PolicyMethod(memory, make_policy(for_bulk(policy, memory.release.inference.policy), **settings))
    return roll_out_on(memory.cohort, method, x, budget=budget, y=y, start=start, stopping=stopping)


def roll_out_on(cohort: Cohort, method, x: np.ndarray, **settings) -> Rollout:
    """As `roll_out_method`, with the features, panels and costs of a cohort."""
    return roll_out_method(
        method,
        x,
        names=cohort.names,
        acquirable=cohort.acquirable,
        groups=cohort.groups,
        costs=cohort.costs,
        **settings,
    )


def roll_out_method(
    method,
    x: np.ndarray,
    *,
    names,
    acquirable,
    groups=None,
    costs=None,
    budget: int = 8,
    y=None,
    start: np.ndarray | None = None,
    stopping: Stopping | None = None,
) -> Rollout:
    """Any method with `predict(x, a)` and `rank(x, a)`. What is NaN in x cannot be measured and is never chosen.

    groups, costs: (d,) as `Cohort` has them; features of one group are measured by one action, paid once.
    budget: most actions, and the number of steps T of the roll-out; a lower `stopping.budget` ends every row sooner.
    A method may have a `step(x, a)`, which returns prediction, scores and gains in nats from one pass; for other methods
    the stopping rules take the scores as nats.
    """
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 0:
        raise ConfigError(f"budget is {budget!r}; it must be a whole number of actions, zero or more.")
    recorded = ~np.isnan(x)
    groups = np.arange(x.shape[1]) if groups is None else groups
    costs = np.ones(x.shape[1], dtype=np.float32) if costs is None else costs
    # a ⊆ r throughout: what a row lacks is never shown to the method.
    a = recorded & (~acquirable if start is None else _checked_start(start, x.shape))
    rule = Stopping.checked(stopping)
    running = np.ones(len(x), dtype=bool)
    taken, spent = np.zeros(len(x), dtype=np.int64), np.zeros(len(x))
    actions = np.full((len(x), budget), -1, dtype=np.int64)
    cost = np.zeros((len(x), budget + 1))
    predictions: list[np.ndarray | Distribution] = []
    losses: list[np.ndarray] = []
    for step in range(budget + 1):
        cost[:, step] = spent
        if step and not running.any():  # nothing has been measured since, so nothing is asked again
            predictions.append(predictions[-1])
            losses.extend(losses[-1:])
            continue
        prediction, scores, gains = _evaluate(method, x, a, last=step == budget)
        predictions.append(prediction)
        if y is not None:
            losses.append(row_losses(prediction, y))
        if step == budget:
            break
        possible = recorded & ~a & acquirable
        scores, gains = (np.where(possible, values, -np.inf) for values in (scores, gains))
        # A row that has stopped stays stopped: `running` only ever falls.
        running &= np.isfinite(scores.max(1)) & ~rule.reached(prediction, gains.max(1), taken, spent)
        # What is too dear is passed over for a cheaper test; a row stops when nothing is left that it can pay for.
        scores = np.where(rule.affordable(spent, costs), scores, -np.inf)
        running &= np.isfinite(scores.max(1))
        chosen = scores.argmax(1)
        for i in np.flatnonzero(running):
            # Of a panel, the members that this row has and does not know yet.
            panel = (groups == groups[chosen[i]]) & acquirable & recorded[i] & ~a[i]
            a[i, panel] = True
            spent[i] += costs[chosen[i]]  # a panel is one action and is paid once
            actions[i, step] = chosen[i]
        taken += running
    return Rollout(tuple(names), actions, tuple(predictions), a, cost, np.stack(losses, axis=1) if losses else None)


def _checked_start(start, shape: tuple[int, ...]) -> np.ndarray:
    start = np.asarray(start)
    # 0 and 1 are no stand-ins: ~1 is -2, so that a test would be bought again and again.
    if start.dtype != bool or start.shape != shape:
        raise InputError(
            f"start has the shape {start.shape} and holds {start.dtype}; it must be (n, d) = {shape} truth values, True for what "
            "is known at first."
        )
    return start


def _evaluate(method, x, a, last: bool):
    """Prediction, and, but for the last step, scores and gains (n, d)."""
    if last:  # nothing is chosen after it, so nothing is ranked
        return method.predict(x, a), None, None
    if hasattr(method, "step"):
        return method.step(x, a)
    scores = method.rank(x, a)
    return method.predict(x, a), scores, scores

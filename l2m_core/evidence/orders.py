"""The best order for everybody, found on context rows alone: what any adaptive order has to beat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from l2m_core.evidence.plan import deal
from l2m_core.memory import L2M, CohortMemory
from l2m_core.metrics import row_losses

JUDGES = 80  # context rows on which orders are judged, at most
SHORTLIST = 5  # tests looked at again for each place after the first
FEWEST_RECORDED = 5  # judging rows that must have a test recorded before it is judged by them


def best_fixed_order(model: L2M, context: CohortMemory, budget: int, generator: np.random.Generator,
                     say: Callable[[], None] = lambda: None) -> tuple[int, ...]:  # fmt: skip
    """Actions by the index of their first feature, best first, chosen one by one.

    A fifth of the context is asked with the rest as its context. Each place goes to the test that lowers the realised
    log loss most in the rows that have it, after the tests already chosen: all tests are tried for the first place,
    and the most promising by their last trial for each later one. What follows is in the order of the last trial.
    """
    cohort = context.cohort
    part = deal(np.arange(len(cohort)), np.asarray(cohort.y, dtype=np.float64), 5, generator)
    judges = np.flatnonzero(part == 0)[:JUDGES]
    memory = model.condition(cohort.rows(np.flatnonzero(part != 0)))
    x, y = cohort.x[judges], cohort.y[judges]
    known = cohort.r[judges] & ~cohort.acquirable
    actions = actions_of(cohort)
    promise = dict.fromkeys(actions, np.inf)
    loss = _losses(memory, x, known, y)
    order: list[int] = []
    while len(order) < min(budget, len(actions)):
        left = sorted((action for action in actions if action not in order), key=lambda action: -promise[action])
        tried: dict[int, np.ndarray] = {}
        for action in left if not order else left[:SHORTLIST]:
            say()
            tells = cohort.r[judges][:, actions[action]].any(1)
            if tells.sum() < FEWEST_RECORDED:
                promise[action] = -np.inf
                continue
            tried[action] = loss.copy()
            tried[action][tells] = _losses(memory, x[tells], _with(known[tells], actions[action]), y[tells])
            promise[action] = float((loss - tried[action])[tells].mean())
        best = max(left, key=lambda action: promise[action])
        order.append(best)
        if best in tried:
            loss, known = tried[best], _with(known, actions[best])
    rest = [action for action in actions if action not in order]
    return (*order, *sorted(rest, key=lambda action: -promise[action]))


def actions_of(cohort) -> dict[int, np.ndarray]:
    """Action → its features: the first one's index stands for a panel that is measured together."""
    members = {}
    for group in dict.fromkeys(cohort.groups[cohort.acquirable].tolist()):
        features = np.flatnonzero((cohort.groups == group) & cohort.acquirable)
        members[int(features[0])] = features
    return members


def _with(known: np.ndarray, features: np.ndarray) -> np.ndarray:
    more = known.copy()
    more[:, features] = True
    return more


def _losses(memory: CohortMemory, x: np.ndarray, known: np.ndarray, y: np.ndarray) -> np.ndarray:
    return row_losses(memory.answer(np.where(known, x, np.nan).astype(np.float32)).prediction, y)

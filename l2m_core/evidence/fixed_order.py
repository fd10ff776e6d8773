"""The best order for everybody, found on context rows alone: what any adaptive order has to beat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from l2m_core.cohort import Cohort
from l2m_core.evidence.folds import assign_folds
from l2m_core.memory import L2M
from l2m_core.metrics import row_losses

PARTS = 3  # folds of the context; each is predicted by a model that has read the others
MOST_JUDGES = 80  # context rows that one test is judged by, at most
SHORTLIST = 5  # tests tried again for each position after the first
FEWEST_RECORDED = 5  # context rows that must have a test recorded before it is judged by them
ROWS_AT_ONCE = 256  # rows between two reports of progress

Report = Callable[[float], None]


def best_fixed_order(
    model: L2M,
    context: Cohort,
    patient: np.ndarray,
    budget: int,
    generator: np.random.Generator,
    report: Report = lambda share: None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Actions by the index of their first feature, best first; and those of them that could not be judged.

    A test is judged by its effect on the log loss of context rows that have it, predicted by a model that has read neither
    the row nor another row of its patient. Tests that too few rows have cannot be judged. They come last, in the order of
    the columns, which says nothing about them.

    patient: (N,) which patient each row is of, from 0. report: called with about the share that is done; an error that it
    raises ends the work.
    """
    shuffled = generator.permutation(len(context))
    judges = {
        action: shuffled[context.r[shuffled][:, members].any(1)][:MOST_JUDGES]
        for action, members in actions_of(context).items()
    }
    unjudged = tuple(action for action, rows in judges.items() if len(rows) < FEWEST_RECORDED)
    judged = {action: rows for action, rows in judges.items() if action not in unjudged}
    if len(judged) < 2:
        return (*judged, *unjudged), unjudged
    part = assign_folds(patient, np.asarray(context.y, dtype=np.float64), PARTS, generator)
    return (*_ordered(CrossFitted(model, context, part, report), judged, min(budget, len(judged))), *unjudged), unjudged


def _ordered(fitted: CrossFitted, judges: dict[int, np.ndarray], positions: int) -> list[int]:
    """Greedy forward selection: each position goes to the test that lowers the realised log loss most, after the tests
    already chosen, in the rows that it is judged by. All tests are tried for the first position, and the most promising by
    their last trial for each later one. Tests that are never chosen follow in the order of their last trial."""
    context, actions = fitted.context, actions_of(fitted.context)
    expected = (len(judges) + SHORTLIST * (positions - 1)) * MOST_JUDGES
    drop = dict.fromkeys(judges, np.inf)
    known = context.r & ~context.acquirable
    loss = np.full(len(context), np.nan)  # after the tests chosen so far; NaN where not computed yet
    order: list[int] = []
    left = list(judges)
    while len(order) < positions and len(left) > 1:
        trials = left[:SHORTLIST] if order else left
        stale = np.unique(np.concatenate([judges[action] for action in trials]))
        stale = stale[np.isnan(loss[stale])]
        # One query for all trials of a position: many small queries take longer.
        shown = [known[stale], *(_with(known[judges[action]], actions[action]) for action in trials)]
        loss[stale], *after = fitted.losses([stale, *(judges[action] for action in trials)], shown, expected)
        tried = dict(zip(trials, after, strict=True))
        drop |= {action: float((loss[judges[action]] - tried[action]).mean()) for action in trials}
        best = max(left, key=lambda action: drop[action])
        order.append(best)
        known[:, actions[best]] = True
        loss[context.r[:, actions[best]].any(1)] = np.nan
        if best in tried:
            loss[judges[best]] = tried[best]
        left = sorted((action for action in left if action != best), key=lambda action: -drop[action])
    return [*order, *left]


class CrossFitted:
    """A context of which each part is predicted by a model that has read the other parts."""

    def __init__(self, model: L2M, context: Cohort, part: np.ndarray, report: Report) -> None:
        self.context, self.part, self.report, self.predicted = context, part, report, 0
        report(0.0)
        self.memories = [model.condition(context.rows(part != 0), rank=False)]
        for number in range(1, PARTS):
            report(0.0)
            # The exponent is found once: of more than two classes that takes several more readings of the context.
            others, exponent = context.rows(part != number), self.memories[0].exponent
            self.memories.append(model.condition(others, exponent=exponent, rank=False))

    def losses(self, rows: list[np.ndarray], known: list[np.ndarray], expected: int) -> list[np.ndarray]:
        """For each array of rows, with what is known of them (n, d) bool, their log losses in nats. expected: about how
        many rows will have been predicted in the end."""
        every = np.concatenate(rows)
        x = np.where(np.concatenate(known), self.context.x[every], np.nan).astype(np.float32)
        loss = np.empty(len(every))
        for number, memory in enumerate(self.memories):
            mine = np.flatnonzero(self.part[every] == number)
            for start in range(0, len(mine), ROWS_AT_ONCE):
                self.report(min(1.0, self.predicted / expected))
                batch = mine[start : start + ROWS_AT_ONCE]
                loss[batch] = row_losses(memory.answer(x[batch]).prediction, self.context.y[every[batch]])
                self.predicted += len(batch)
        return np.split(loss, np.cumsum([len(each) for each in rows])[:-1])


def actions_of(cohort: Cohort) -> dict[int, np.ndarray]:
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

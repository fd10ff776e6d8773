"""The best order for everybody, found on context rows alone: what any adaptive order has to beat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from l2m_core.cohort import Cohort
from l2m_core.evidence.folds import deal
from l2m_core.memory import L2M
from l2m_core.metrics import row_losses

PARTS = 3  # of the context; each is asked by a model that has read the others
JUDGES = 80  # context rows that judge one test, at most
SHORTLIST = 5  # tests looked at again for each place after the first
FEWEST_RECORDED = 5  # context rows that must have a test recorded before it is judged by them
ASKED_AT_ONCE = 256  # rows between two looks at whether to go on

Say = Callable[[float], None]


def best_fixed_order(
    model: L2M,
    context: Cohort,
    patient: np.ndarray,
    budget: int,
    generator: np.random.Generator,
    say: Say = lambda share: None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Actions by the index of their first feature, best first; and those of them that could not be judged.

    Any row of the context may judge, asked by a model that has read neither it nor another row of its patient. Tests
    that too few rows have cannot be judged. They come last, in the order of the columns, which says nothing about them.

    patient: (N,) which patient each row is of, from 0. say: told the share that is done, about; what it raises ends the
    work.
    """
    shuffled = generator.permutation(len(context))
    judges = {
        action: shuffled[context.r[shuffled][:, members].any(1)][:JUDGES]
        for action, members in actions_of(context).items()
    }
    unjudged = tuple(action for action, rows in judges.items() if len(rows) < FEWEST_RECORDED)
    judged = {action: rows for action, rows in judges.items() if action not in unjudged}
    if len(judged) < 2:
        return (*judged, *unjudged), unjudged
    part = deal(patient, np.asarray(context.y, dtype=np.float64), PARTS, generator)
    return (*_ordered(CrossFitted(model, context, part, say), judged, min(budget, len(judged))), *unjudged), unjudged


def _ordered(fitted: CrossFitted, judges: dict[int, np.ndarray], places: int) -> list[int]:
    """Chosen one by one: each place goes to the test that lowers the realised log loss most in the rows that judge it,
    after the tests already chosen. All tests are tried for the first place, and the most promising by their last trial
    for each later one. What follows is in the order of the last trial."""
    context, actions = fitted.context, actions_of(fitted.context)
    expected = (len(judges) + SHORTLIST * (places - 1)) * JUDGES
    promise = dict.fromkeys(judges, np.inf)
    known = context.r & ~context.acquirable
    loss = np.full(len(context), np.nan)  # after the tests chosen so far; NaN where not asked yet
    order: list[int] = []
    left = list(judges)
    while len(order) < places and len(left) > 1:
        trials = left[:SHORTLIST] if order else left
        stale = np.unique(np.concatenate([judges[action] for action in trials]))
        stale = stale[np.isnan(loss[stale])]
        # All that is asked for one place is one question: many small ones take longer.
        shown = [known[stale], *(_with(known[judges[action]], actions[action]) for action in trials)]
        loss[stale], *after = fitted.losses([stale, *(judges[action] for action in trials)], shown, expected)
        tried = dict(zip(trials, after, strict=True))
        promise |= {action: float((loss[judges[action]] - tried[action]).mean()) for action in trials}
        best = max(left, key=lambda action: promise[action])
        order.append(best)
        known[:, actions[best]] = True
        loss[context.r[:, actions[best]].any(1)] = np.nan
        if best in tried:
            loss[judges[best]] = tried[best]
        left = sorted((action for action in left if action != best), key=lambda action: -promise[action])
    return [*order, *left]


class CrossFitted:
    """A context whose rows are asked by models that have read the other parts of it."""

    def __init__(self, model: L2M, context: Cohort, part: np.ndarray, say: Say) -> None:
        self.context, self.part, self.say, self.asked = context, part, say, 0
        say(0.0)
        self.memories = [model.condition(context.rows(part != 0))]
        # How sure predictions are to be is found once: of more than two classes it takes several readings more.
        as_it_is = replace(model.release, inference=replace(model.release.inference, sharpness=0.0))
        for number in range(1, PARTS):
            say(0.0)
            memory = replace(model, release=as_it_is).condition(context.rows(part != number))
            self.memories.append(replace(memory, sharpness=self.memories[0].sharpness))

    def losses(self, rows: list[np.ndarray], known: list[np.ndarray], expected: int) -> list[np.ndarray]:
        """For each list of rows, and what is known of them (n, d) bool, their log loss in nats. expected: rows that will
        have been asked in the end, about."""
        every = np.concatenate(rows)
        x = np.where(np.concatenate(known), self.context.x[every], np.nan).astype(np.float32)
        loss = np.empty(len(every))
        for number, memory in enumerate(self.memories):
            mine = np.flatnonzero(self.part[every] == number)
            for start in range(0, len(mine), ASKED_AT_ONCE):
                self.say(min(1.0, self.asked / expected))
                lot = mine[start : start + ASKED_AT_ONCE]
                loss[lot] = row_losses(memory.answer(x[lot]).prediction, self.context.y[every[lot]])
                self.asked += len(lot)
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

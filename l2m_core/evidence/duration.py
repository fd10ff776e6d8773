"""About how long the evidence will take: a quick trial on this machine, scaled by the work that there is."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np

from l2m_core.cohort import Cohort
from l2m_core.errors import RangeWarning
from l2m_core.evidence.fixed_order import MOST_JUDGES, PARTS, SHORTLIST, actions_of
from l2m_core.evidence.fold_answers import orders_for
from l2m_core.evidence.folds import EvidenceSettings
from l2m_core.memory import L2M

TRIED_ROWS = 200  # read in the trial
ASKED_ROWS = 16
OWN_WORK = 2000  # of a row, counted in the rows that it could read in that time (as in answering/engine.py)
COUNCIL_READINGS, COUNCIL_SHARE = 4, 0.75  # at most: readings of so much of the context


@dataclass(frozen=True)
class Pace:
    """Seconds on this machine, as busy as it was then."""

    reading: float
    """Of TRIED_ROWS rows of the cohort, until they can be predicted from."""
    aligning: float
    """Of the gain head with the answers, of a memory of these rows."""
    asking: float
    """Of one row, whose context are these rows."""
    growing: float
    """Of one tree on these rows."""


def measure_pace(model: L2M, cohort: Cohort, conventional: bool = True) -> Pace:
    rows = np.random.default_rng(0).permutation(len(cohort))[:TRIED_ROWS]
    part = cohort.rows(np.sort(rows))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        memory = model.condition(part, rank=False)
    read = time.perf_counter()
    memory = memory.aligned()
    aligned = time.perf_counter()
    memory.answer(part.x[:ASKED_ROWS])
    asking = (time.perf_counter() - aligned) / min(ASKED_ROWS, len(part))
    return Pace(read - began, aligned - read, asking, _growing(part) if conventional else 0.0)


def _growing(part: Cohort) -> float:
    if len(np.unique(part.y)) < 2:
        return 0.0
    # scikit-learn, which not every machine has.
    from l2m_core.tabular.preparation import prepare
    from l2m_core.tabular.trees import FittedTrees, TreeSettings

    prepared, trees = prepare(part), 10
    began = time.perf_counter()
    FittedTrees(prepared, TreeSettings(depth=2, rounds=trees), np.random.default_rng(0))
    return (time.perf_counter() - began) / trees


def expected_seconds(model: L2M, cohort: Cohort, settings: EvidenceSettings, pace: Pace | None = None) -> float:
    """pace: what was measured earlier of this cohort and model."""
    pace = pace or measure_pace(model, cohort, settings.conventional)
    tried, most_rows = min(TRIED_ROWS, len(cohort)), model.rows_read(cohort)
    context = len(cohort) * (settings.folds - 1) / settings.folds

    def reading(rows: float) -> float:
        rows = min(rows, most_rows)
        return pace.reading * rows * (rows + OWN_WORK) / (tried * (tried + OWN_WORK))

    actions = len(actions_of(cohort))
    steps = min(settings.budget, actions)
    asked = min(settings.most_rows, len(cohort)) / settings.folds
    # The best fixed order is found on parts of the context; then each order is followed, the model's with a second look.
    trials = (actions + SHORTLIST * max(0, steps - 1)) * min(MOST_JUDGES, context)
    questions = trials + (len(orders_for(cohort)) + 1) * steps * asked
    # Whose gains are asked for has its head aligned: on fewer states of a long cohort, so about as long however many its rows.
    read = reading(context) + pace.aligning + PARTS * reading(context * (PARTS - 1) / PARTS)
    if settings.council:
        read += COUNCIL_READINGS * reading(context * COUNCIL_SHARE)
    grown = pace.growing * _trees(context) * context / tried if settings.conventional else 0.0
    asking = questions * pace.asking * min(context, most_rows) / tried
    return settings.folds * (read + asking + grown)


def _trees(rows: float) -> float:
    """That the tuning of boosted trees grows: of each candidate on three parts of two thirds, and once on all."""
    from l2m_core.tabular.trees import GRID, LONG_GRID, LONG_ROWS

    candidates = [*GRID, *(LONG_GRID if rows >= LONG_ROWS else ())]
    return sum(2 * each.rounds for each in candidates) + max(each.rounds for each in candidates)


def in_words(seconds: float) -> str:
    if seconds < 90:
        return f"About {max(10, round(seconds, -1)):.0f} s"
    return f"About {seconds / 60:.0f} min" if seconds < 90 * 60 else f"About {seconds / 3600:.1f} h"

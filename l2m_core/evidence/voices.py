"""Head to head: what other predictors believe of the same patients, knowing the same of each.

Each patient is stepped through as on the page: by the general model, with the cohort's council where that has a say. After
every test, the general model alone, a regression and boosted trees predict from just what is known by then. The regression
and the trees are what one would fit otherwise: their settings are chosen by cross-validation, and all that they have learned
from is the same context that the model has read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from l2m_core.answering.predictive import Predictive
from l2m_core.cohort import Cohort
from l2m_core.memory import CohortMemory
from l2m_core.metrics import row_crps, row_losses
from l2m_core.tabular.predictions import Gaussian

GENERAL, COUNCIL, REGRESSION, TREES = "model", "council", "regression", "trees"
LEVELS = np.round(np.arange(0.1, 0.95, 0.1), 1)  # nominal levels of central intervals, for a continuous outcome

Believed = np.ndarray | Predictive | Gaussian


@dataclass(frozen=True)
class Heard:
    """What V voices believed of n rows at T + 1 points. For classes p is filled; for a continuous outcome the last three."""

    loss: np.ndarray
    """(V, n, T + 1) nats."""
    p: np.ndarray
    """(V, n, T + 1, K)"""
    mean: np.ndarray
    """(V, n, T + 1)"""
    crps: np.ndarray
    """(V, n, T + 1)"""
    covered: np.ndarray
    """(V, n, T + 1, L): whether the central interval of each level covers the outcome."""


def hear(
    memory: CohortMemory,
    x: np.ndarray,
    known: np.ndarray,
    believed: list[Believed],
    council: bool,
    conventional: bool,
    seed: int,
    check: Callable[[], None],
) -> dict[str, list[Believed]]:
    """For each voice, what it believes at each point.

    memory: as patients were stepped through, with the council if that changes anything; x: (n, d); known: (n, T + 1, d) bool;
    believed: what it believes at each point; council: whether a council is a voice, even one that changes nothing.
    """
    alone = memory.with_council(None)
    found: dict[str, list[Believed]] = {
        GENERAL: believed
        if memory.council is None
        else [alone.predictions(np.where(at, x, np.nan).astype(np.float32)) for at in known.swapaxes(0, 1)]
    }
    if council:
        found[COUNCIL] = believed
    if conventional:
        for name, predict in _conventional(memory.cohort, seed, check):
            found[name] = [predict(x, known[:, t]) for t in range(known.shape[1])]
            check()
    return found


def _conventional(context: Cohort, seed: int, check: Callable[[], None]):
    # scikit-learn, which not every machine has.
    from l2m_core.tabular.linear import LinearModel
    from l2m_core.tabular.preparation import prepare
    from l2m_core.tabular.trees import TreeModel

    prepared = prepare(context)
    for name, model in ((REGRESSION, LinearModel()), (TREES, TreeModel())):
        check()
        yield name, model.fit(prepared, np.random.default_rng([seed, 6])).predict  # type: ignore[attr-defined]


def known_at(cohort: Cohort, x: np.ndarray, actions: np.ndarray, members: dict[int, np.ndarray]) -> np.ndarray:
    """(n, T + 1, d) bool: what is known before any test and after each. actions: (n, T) first features, -1 for none."""
    recorded = ~np.isnan(x)
    known = [recorded & ~cohort.acquirable]
    for taken in actions.T:
        after = known[-1].copy()
        for action, features in members.items():
            rows = np.flatnonzero(taken == action)
            after[np.ix_(rows, features)] = recorded[np.ix_(rows, features)]
        known.append(after)
    return np.stack(known, 1)


def measured(beliefs: list[list[Believed]], y: np.ndarray) -> Heard:
    """beliefs: of each voice, at each point."""
    loss = np.stack([np.stack([row_losses(belief, y) for belief in each], 1) for each in beliefs])
    if isinstance(beliefs[0][0], np.ndarray):
        p = np.stack([np.stack(each, 1) for each in beliefs]).astype(np.float32)  # type: ignore[arg-type]
        none = np.zeros((0, 0, 0), dtype=np.float32)
        return Heard(loss, p, none, none, np.zeros((0, 0, 0, 0), dtype=bool))
    each_point: list[list[Predictive | Gaussian]] = beliefs  # type: ignore[assignment]
    return Heard(
        loss,
        np.zeros((0, 0, 0, 0), dtype=np.float32),
        np.stack([np.stack([np.asarray(belief.mean) for belief in each], 1) for each in each_point]).astype(np.float32),
        np.stack([np.stack([row_crps(belief, y) for belief in each], 1) for each in each_point]).astype(np.float32),
        np.stack([np.stack([_covered(belief, y) for belief in each], 1) for each in each_point]),
    )


def _covered(belief: Predictive | Gaussian, y: np.ndarray) -> np.ndarray:
    """(n, L) whether the central interval of each level covers y."""
    return np.stack(
        [(y >= belief.quantile((1 - level) / 2)) & (y <= belief.quantile((1 + level) / 2)) for level in LEVELS], 1
    )

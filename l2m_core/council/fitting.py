"""Fits a council: finds its weights on rows left out, then fits its members to all rows of the cohort."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sklearn
import torch

from l2m_core.answering.predictive import Predictive
from l2m_core.cohort import Cohort
from l2m_core.council.council import (
    MODEL,
    Council,
    NoBins,
    Recipe,
    happened_of,
    in_form_of,
    masses_of,
)
from l2m_core.council.members import fit_members, members_of
from l2m_core.council.weights import LEAST, find_weights
from l2m_core.errors import InputError
from l2m_core.tabular.preparation import folds, prepare, random_acquisitions, rows_beside

FOLDS = 4
ASKED = 1000
"""Rows left out that the weights are found on, at most: of a long cohort fewer folds are asked, of fewer rows each."""
MOST_COPIES = 3
"""How often a row of a short cohort is asked about, each time with other parts known."""
FEWEST_ROWS = 50
"""Rows left out of a shorter cohort say too little."""

SPREAD, LEAST_SPREAD = 0.2, 0.1
"""How far weights may lie from those expected before any row has spoken, with continuous outcomes; and with classes in a short
cohort, of which the model leaves the other members little to tell."""
SHORT_ROWS = 400
"""A cohort of no more is short."""
EXPECTED = {"Gaussian process": 0.4, "Bayesian regression": 0.2}
"""Weights of members before any row has spoken, of the others 0. Chosen on public tables that nothing here is measured on."""
RARER_ROWS = 100
"""So many rows with another outcome than the most frequent class give a member the weight that is expected of it; fewer, less."""

# From a cohort to a function from (n, d) values, NaN where unknown, to the model's predictions.
Read = Callable[[Cohort], Callable[[np.ndarray], np.ndarray | Predictive]]


def rebuild(cohort: Cohort, recipe: Recipe) -> Council:
    """The recipe's council, fitted to all rows of the cohort."""
    members, refused = fit_members(recipe.members, prepare(cohort), recipe.seed) if recipe.members else ({}, {})
    if refused:
        raise InputError(
            f"The council's {', '.join(refused)} cannot be fitted to this cohort again; it was made with another cohort "
            f"or another version ({_in_words(recipe.versions)}, here {_in_words(versions())})."
        )
    return Council(recipe, members)


def expected_weights(cohort: Cohort) -> dict[str, float]:
    """Each member of such a cohort's council → its weight before any row has spoken."""
    share = 1.0
    if cohort.kind != "continuous":
        share = min(1.0, (len(cohort) - int(np.bincount(cohort.y).max())) / RARER_ROWS)
    return {name: share * EXPECTED.get(name, 0.0) for name in members_of(cohort.kind)}


def spread_of(kind: str, rows: int) -> float:
    """How far the weights of such a cohort's council may lie from those expected. Chosen on synthetic tables and tasks; in long
    cohorts on public tables that nothing here is measured on."""
    if kind == "continuous":
        return SPREAD
    # The longer a cohort, the more the other members learn that the model, which reads so many rows, does not know.
    return LEAST_SPREAD * max(1.0, rows / SHORT_ROWS)


def fit_council(
    cohort: Cohort,
    read: Read,
    seed: int = 0,
    check: Callable[[], None] = lambda: None,
    members: Mapping[str, float] | None = None,
) -> Council:
    """Finds the weights on rows left out, then fits the members that have any to all rows.

    read: has the model read a part of the cohort; check: is called now and then, and may end the work by raising;
    members: as `expected_weights`, of which these are by default.
    """
    members = expected_weights(cohort) if members is None else members
    if len(cohort) < FEWEST_ROWS or len(np.unique(cohort.y)) < 2:
        return Council(Recipe(seed=seed, notes=(f"A council is fitted from {FEWEST_ROWS} rows on.",)), {})
    try:
        told, refused = _left_out(cohort, read, tuple(members), seed, check)
    except NoBins as reason:
        return Council(Recipe(seed=seed, notes=(str(reason),)), {})
    names = [name for name in members if name not in refused]
    expected = np.array([members[name] for name in names])
    found = find_weights(told.p, told.happened, spread_of(cohort.kind, len(cohort)), told.copies, expected)
    weights = dict(zip([MODEL, *names], found.tolist(), strict=True))
    notes = tuple(f"The member '{name}' was left out: it could not be fitted ({why})." for name, why in refused.items())
    heard = {name: weight for name, weight in weights.items() if weight > 0}
    if len(heard) == 1 and abs(heard[MODEL] - 1) < LEAST:
        heard = {MODEL: 1.0}
    check()
    return rebuild(cohort, Recipe(heard, seed, versions(), notes))


def versions() -> dict[str, str]:
    return {"numpy": np.__version__, "scikit-learn": sklearn.__version__, "torch": str(torch.__version__)}


@dataclass(frozen=True)
class Told:
    """What each voice said of rows left out."""

    p: np.ndarray
    """(voices, n, K) probabilities of the classes, or of the bins; the model's first."""
    happened: np.ndarray
    """(n,) which of the K did"""
    copies: int
    """How often each row is among them."""


def _left_out(
    cohort: Cohort, read: Read, names: Sequence[str], seed: int, check: Callable[[], None]
) -> tuple[Told, dict[str, str]]:
    """What the model, and each member that could be fitted, said of rows left out; and why the other members could not.

    Random parts of each row are known. Folds are asked until ASKED rows have been: in a long cohort one is enough, and
    the model reads rows beside it once.
    """
    context, random = prepare(cohort), np.random.default_rng(seed)
    # The same rows in the order of `prepare`, so that nothing depends on how the file was sorted.
    ordered = Cohort(cohort.schema, context.x, context.y, cohort.name)
    fold = folds(context, FOLDS, random)
    copies = int(np.clip(ASKED // len(context.y), 1, MOST_COPIES))
    masses: dict[str, list[np.ndarray]] = {name: [] for name in (MODEL, *names)}
    happened: list[np.ndarray] = []
    refused: dict[str, str] = {}
    asked = 0
    for number in range(FOLDS):
        out = np.flatnonzero(fold == number)
        out = np.sort(random.permutation(out)[: ASKED - asked])
        if not len(out):
            break
        asked += len(out)
        rest = rows_beside(context, out)
        out = np.repeat(out, copies)
        a = random_acquisitions(context.r[out], context.acquirable, context.groups, random)
        x = np.where(a, context.x[out], np.nan).astype(np.float32)
        check()
        told = read(ordered.rows(rest))(x)
        check()
        members, missing = fit_members([name for name in names if name not in refused], context.rows(rest), seed)
        refused |= missing
        happened.append(happened_of(told, context.y[out]))
        masses[MODEL].append(masses_of(told))
        for name, member in members.items():
            masses[name].append(masses_of(in_form_of(told, member.predict(x, a))))
    p = np.stack([np.concatenate(parts) for name, parts in masses.items() if name not in refused])
    return Told(p, np.concatenate(happened), copies), refused


def _in_words(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages.items())

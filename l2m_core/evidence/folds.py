"""Folds of patients for cross-fitting, and the rows of each fold that are predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from l2m_core.answering.settings import MODEL_POLICIES
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, ConfigError

FEWEST_ROWS = 20
MOST_ALIKE_BY_CHANCE = 0.05
"""Rows are taken for copies where fewer others than this would have the same values by chance."""
LEAST_OF_A_CLASS = 2  # rows of every class in every context, where the cohort has them


@dataclass(frozen=True)
class EvidenceSettings:
    """How the evidence is gathered. The same settings, cohort and model give the same figures."""

    folds: int = 5
    """Parts that the patients are split into; each is asked with the others as context."""
    budget: int = 8
    """Most tests of a patient."""
    most_rows: int = 300
    """Most rows that are asked; drawn at random where the cohort has more."""
    policy: str = "gain"
    """What the model orders tests by: gain, gain per cost, learned or monte carlo."""
    patients: str | None = None
    """A column that tells which rows belong to one patient, such as a record number; empty: each row is a patient; None: the
    cohort's own, where patients have several rows."""
    draws: int = 1000
    """Bootstrap samples of the patients behind each interval."""
    seed: int = 0
    """Of the folds, the rows asked, the random orders and the bootstrap."""
    council: bool = True
    """Whether the council is heard beside the general model, as it is in step-throughs unless the installation says otherwise."""
    conventional: bool = True
    """Whether a regression and boosted trees are fitted to the same rows, to compare with. Most of the work in long cohorts."""

    def __post_init__(self) -> None:
        for name, least, most in (
            ("folds", 2, 20),
            ("budget", 1, 100),
            ("most_rows", 10, 100_000),
            ("draws", 100, 100_000),
            ("seed", 0, 2**31),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise ConfigError(f"{name} is {value!r}; it must be a whole number from {least} to {most:,}.")
        for name in ("council", "conventional"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be true or false.")
        if self.policy not in MODEL_POLICIES:
            raise ConfigError(f"policy is {self.policy!r}; it must be one of {', '.join(MODEL_POLICIES)}.")

    def of(self, cohort: Cohort) -> EvidenceSettings:
        """The same with the column of patients that this cohort's table tells, where none is stated."""
        return self if self.patients is not None else replace(self, patients=cohort.patient_column or "")


@dataclass(frozen=True)
class Plan:
    """Which rows are predicted, and from which."""

    fold: np.ndarray
    """(N,) the fold of each row."""
    asked: np.ndarray
    """(n,) rows that are predicted, in rising order."""
    patient: np.ndarray
    """(N,) which patient each row is of, from 0."""

    @property
    def folds(self) -> int:
        return int(self.fold.max()) + 1

    def context(self, fold: int) -> np.ndarray:
        """Rows from which this fold is predicted."""
        return np.flatnonzero(self.fold != fold)

    def asked_of(self, fold: int) -> np.ndarray:
        return self.asked[self.fold[self.asked] == fold]


def make_plan(cohort: Cohort, settings: EvidenceSettings) -> Plan:
    """Folds stratified by outcome that keep the rows of one patient together."""
    patient = patients_of(cohort, settings.of(cohort).patients or "")
    count = int(patient.max()) + 1
    if len(cohort) < FEWEST_ROWS or count < max(FEWEST_ROWS, settings.folds):
        raise CohortError(
            f"The cohort has {len(cohort)} rows of {count} different patients; at least {FEWEST_ROWS} are needed to ask "
            "some of them with the others as context."
        )
    generator = np.random.default_rng([settings.seed, 1])
    fold = assign_folds(patient, np.asarray(cohort.y, dtype=np.float64), settings.folds, generator)
    _check_classes(cohort, fold)
    asked = np.arange(len(cohort))
    if len(asked) > settings.most_rows:
        # The same share of every fold, and so of every outcome, as folds are stratified by it: the first row of each fold,
        # then the second of each, …
        shuffled = generator.permutation(len(cohort))
        asked = np.sort(shuffled[np.argsort(_position_in_fold(fold[shuffled]), kind="stable")][: settings.most_rows])
    return Plan(fold, asked, patient)


def patients_of(cohort: Cohort, column: str) -> np.ndarray:
    """(N,) numbers from 0. Without a column, rows that are exact copies of each other count as one patient: a copy in
    the context would answer for itself. Rows that are alike because little is recorded of them, or only what many have,
    are no copies: as one patient, all who came without any test would be asked of a context that has none of them."""
    if column:
        if cohort.source is None or column not in cohort.source.names:
            raise CohortError(f"The cohort's table has no column '{column}' that could tell patients apart.")
        return cohort.grouped_by(column)
    cells = np.column_stack([np.where(cohort.r, cohort.x, 0), cohort.r, cohort.y])
    alike = np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)
    by_chance = _alike_by_chance(cohort, np.bincount(alike)[alike]) > MOST_ALIKE_BY_CHANCE
    alone = alike.max() + 1 + np.arange(len(cohort))
    return np.unique(np.where(by_chance, alone, alike), return_inverse=True)[1].reshape(-1)


def _alike_by_chance(cohort: Cohort, alike: np.ndarray) -> np.ndarray:
    """(N,) how many other rows are expected to have what is recorded of each, were columns independent of each other.

    alike: (N,) rows that have it, itself among them: they are left out of the shares, so that copies do not speak for
    themselves. A class is shared by many, and so tells no two patients apart; the number of a continuous outcome may.
    """
    expected = len(cohort) - alike.astype(np.float64)
    columns = [*cohort.x.T, cohort.y] if cohort.kind == "continuous" else cohort.x.T
    for values in columns:
        known = ~np.isnan(values)
        _, code, counts = np.unique(values[known], return_inverse=True, return_counts=True)
        others = counts[code.reshape(-1)] - alike[known]
        expected[known] *= others / np.maximum(known.sum() - alike[known], 1)
    return expected


def assign_folds(patient: np.ndarray, outcome: np.ndarray, folds: int, generator: np.random.Generator) -> np.ndarray:
    """(N,) the fold of each row, stratified by outcome; the rows of one patient share a fold.

    Patients in the order of their outcome are taken `folds` at a time, and each such group is spread over all folds at
    random. patient: (N,) from 0; outcome: (N,), of which a patient's smallest counts.
    """
    count = int(patient.max()) + 1
    first = np.full(count, np.inf)
    np.minimum.at(first, patient, outcome)
    order = generator.permutation(count)  # patients of equal outcome in random order
    order = order[np.argsort(first[order], kind="stable")]
    groups = -(-count // folds)
    fold = np.concatenate([generator.permutation(folds) for _ in range(groups)])[:count]
    of_patient = np.empty(count, dtype=np.int64)
    of_patient[order] = fold
    return of_patient[patient]


def _position_in_fold(fold: np.ndarray) -> np.ndarray:
    """(N,) how many rows of the same fold come before each row."""
    position = np.empty(len(fold), dtype=np.int64)
    for number in np.unique(fold):
        rows = np.flatnonzero(fold == number)
        position[rows] = np.arange(len(rows))
    return position


def _check_classes(cohort: Cohort, fold: np.ndarray) -> None:
    if cohort.kind == "continuous":
        return
    for code, name in enumerate(cohort.classes):
        have = cohort.y == code
        fewest = min(int((have & (fold != number)).sum()) for number in np.unique(fold))
        if fewest < LEAST_OF_A_CLASS:
            raise CohortError(
                f"Only {int(have.sum())} rows have the outcome '{name}', so that a context without one fold would hold "
                f"{fewest} of them. Collect more such rows, or merge this class with another."
            )

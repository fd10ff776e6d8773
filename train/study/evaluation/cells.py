"""What methods are compared on: a context to learn from, and other rows of the same table to decide about."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.learn.finetune import outcome_of_patients, rows_of_patients
from l2m_core.tasks.batch import TaskBatch

LEAST_TEST_ROWS = 75
LONG_CONTEXT = 1000
"""A context of so many rows is for long tables only, and is reported apart."""
SMALL_CONTEXT = 50
"""Rows of the context where a larger one would leave too few rows to test on."""


@dataclass(frozen=True)
class Trial:
    """context: what a method learns from; x: (n, d), y: (n,) other rows, NaN where a value cannot be had.

    Where a task's mechanism is known: informative: (n, d) bool; probabilities: (n, K) of all features.
    """

    context: Cohort
    x: np.ndarray
    y: np.ndarray
    informative: np.ndarray | None = None
    probabilities: np.ndarray | None = None


@dataclass(frozen=True)
class Cell:
    """One entry of the table of comparisons."""

    cohort: str
    context: int
    missing: float
    """Share of the recorded acquirable values that is hidden on top of what the table lacks."""
    seed: int


def real_cells(
    sizes: dict[str, int], contexts: Sequence[int], missing: Sequence[float], seeds: Sequence[int]
) -> list[Cell]:
    """Cells of cohorts with so many rows, the first seed of all before the second of any."""
    return [
        Cell(name, context, share, seed)
        for seed in seeds
        for share in missing
        for name, rows in sizes.items()
        for context in fitting_contexts(rows, contexts)
    ]


def fitting_contexts(rows: int, contexts: Sequence[int]) -> list[int]:
    """The context sizes that leave enough rows to test on; one that does not becomes the small one, and a long one is
    left out."""
    fits = {c: rows - c >= LEAST_TEST_ROWS for c in contexts}
    fitting = {c if fits[c] else SMALL_CONTEXT for c in contexts if fits[c] or c < LONG_CONTEXT}
    return sorted(c for c in fitting if rows > c)


def unfitting_contexts(sizes: dict[str, int], contexts: Sequence[int]) -> dict[str, str]:
    """Name → what becomes of the context sizes that leave too few of its rows to test on."""
    told = {}
    for name, rows in sizes.items():
        fitting = fitting_contexts(rows, contexts)
        unfitting = [str(context) for context in sorted({*contexts} - {*fitting})]
        if unfitting and rows > SMALL_CONTEXT:
            instead = f"; {SMALL_CONTEXT} rows instead" if SMALL_CONTEXT in fitting else ""
            told[name] = (
                f"no context of {' or '.join(unfitting)} of its {rows:,} rows, which leaves fewer than {LEAST_TEST_ROWS} to test "
                f"on{instead}"
            )
    return told


def too_small(sizes: dict[str, int]) -> dict[str, str]:
    """Name → why a cohort has no cell, whatever contexts are asked for."""
    return {
        name: f"{rows} rows with an outcome; more than {SMALL_CONTEXT} are needed, to learn from and to test on"
        for name, rows in sizes.items()
        if rows <= SMALL_CONTEXT
    }


def draw_trial(cohort: Cohort, cell: Cell, test_rows: int = 300) -> Trial:
    """Context and test rows never share a row, nor a patient. Of one seed, smaller contexts lie within larger ones.

    The extra missingness hides recorded acquirable values completely at random, in the context as in the test rows: a
    record of the past is all there is, and what it lacks cannot be asked for.
    """
    generator = np.random.default_rng([cell.seed, zlib.crc32(cell.cohort.encode())])
    patient = whose_rows(cohort)
    order = patients_in_order(cohort, patient, generator)
    hidden = (generator.random(cohort.x.shape) < cell.missing) & cohort.acquirable
    context, rest = order[: cell.context], order[cell.context :]
    if cohort.kind != "continuous":
        context, rest = with_every_class(cohort.y, context, rest)
    # The context may end amid a patient's rows; the others would be answered for by those that are read.
    rest = rest[~np.isin(patient[rest], patient[context])]
    if len(rest) == 0:
        raise ConfigError(
            f"Cohort '{cell.cohort}': a context of {cell.context} rows has rows of every patient, which leaves nobody to test "
            "on. Give smaller --contexts."
        )
    # Test rows come from the far end, so that they are the same for every context where the table is long enough.
    test = rest[::-1][:test_rows]
    x = np.where(hidden, np.nan, cohort.x).astype(np.float32)
    part = cohort.without_table().rows(context)
    # The rows as read hold what is hidden here, so they do not travel along.
    part = Cohort(part.schema, x[context], part.y, cohort.name, kept_patients=part.kept_patients)
    return Trial(part, x[test], cohort.y[test])


def whose_rows(cohort: Cohort) -> np.ndarray:
    """(N,) whose each row is, from 0 in the order of the rows; without a column that tells, each row is a patient."""
    if cohort.patients is None:
        return np.arange(len(cohort))
    _, first, patient = np.unique(cohort.patients, return_index=True, return_inverse=True)
    return first.argsort().argsort()[patient]


def patients_in_order(cohort: Cohort, patient: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """(N,) all rows, those of a patient side by side: the patients in a stratified order of their outcomes."""
    of_row = torch.from_numpy(patient)
    outcome = outcome_of_patients(torch.from_numpy(cohort.y.astype(np.float64)), of_row).numpy().astype(cohort.y.dtype)
    order = stratified_order(outcome, generator, continuous=cohort.kind == "continuous")
    return rows_of_patients(torch.from_numpy(order), of_row).numpy()


def stratified_order(y: np.ndarray, generator: np.random.Generator, continuous: bool = False) -> np.ndarray:
    """A random order of which every stretch has nearly the outcome's own distribution."""
    if continuous:
        strata = np.searchsorted(np.quantile(y, np.arange(1, 10) / 10), y)
    else:
        strata = np.asarray(y, dtype=np.int64)
    position = np.empty(len(y))
    for stratum in np.unique(strata):
        members = generator.permutation(np.flatnonzero(strata == stratum))
        position[members] = (np.arange(len(members)) + generator.random(len(members))) / len(members)
    return np.argsort(position, kind="stable")


def with_every_class(y: np.ndarray, context: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Swaps rows so that the context holds each class that has two rows or more; one always stays to test on."""
    context, rest = context.copy(), rest.copy()
    for label, count in zip(*np.unique(y, return_counts=True), strict=True):
        if count < 2 or (y[context] == label).any():
            continue
        labels, counts = np.unique(y[context], return_counts=True)
        leaving = np.flatnonzero(y[context] == labels[counts.argmax()])[-1]
        entering = np.flatnonzero(y[rest] == label)[0]
        context[leaving], rest[entering] = rest[entering], context[leaving]
    return context, rest


def task_trial(
    batch: TaskBatch, index: int, context: int, test_rows: int, name: str = "task", complete: bool = False
) -> Trial:
    """Task `index` of a batch: its first rows as context, its last ones to decide about.

    complete: everything of the rows decided about can be had, though the record of the past has holes.
    """
    x = torch.where(batch.r[index], batch.x[index], float("nan")).cpu().numpy()
    y = batch.y[index].cpu().numpy()
    classes = None if batch.n_classes is None else [str(k) for k in range(int(batch.n_classes[index]))]
    cohort = Cohort.from_arrays(
        x,
        y,
        kind="continuous" if classes is None else "binary" if len(classes) == 2 else "multiclass",
        acquirable=batch.acquirable[index].cpu().numpy(),
        categorical=batch.categorical[index].cpu().numpy(),
        classes=classes,
        name=name,
    )
    test = slice(max(context, len(y) - test_rows), None)
    truth = batch.truth
    informative = None if truth is None or truth.informative is None else truth.informative[index, test].cpu().numpy()
    probabilities = None
    if truth is not None and truth.probabilities is not None and classes is not None:
        probabilities = truth.probabilities[index, test, : len(classes)].cpu().numpy()
    asked = batch.x[index, test].cpu().numpy() if complete else cohort.x[test]
    return Trial(cohort.rows(slice(0, context)), asked, cohort.y[test], informative, probabilities)

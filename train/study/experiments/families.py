"""Families of tasks: where an experiment's trials come from. Task number i of a family is the same in every run."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.settings import check_least
from l2m_core.tasks.registry import build_prior
from train.prior_data import DataChoice, rows_of
from train.study.evaluation.cells import Cell, Trial, draw_trial, task_trial
from train.study.experiments.datasets import FoundCohort, find_cohort, find_digits

STUDY_DIGITS = "study_digits"
SOURCES = ("prior", "cohort", "semi_synthetic", "digits")


@dataclass(frozen=True)
class Family:
    """A distribution over trials."""

    name: str
    source: str = "prior"
    """"prior": synthetic tasks; "cohort": rows of a real table with its own outcome; "semi_synthetic": rows of a real
    table with drawn outcomes and missingness; "digits": pictures of digits by blocks."""
    prior: str = "bnn"
    """Of the source "prior": a name of the registry; of "digits": "study_digits" for the study's own blocks, else pixels."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the prior."""
    data: str = ""
    """Of the other sources: the data set's name."""
    features: int = 10
    """Of the source "cohort", where `narrowed`; of the others always."""
    narrowed: bool = False
    """Of the source "cohort": of a wider table only so many features stay (`fewer_features`)."""
    two_classes: bool = False
    """Of the source "cohort": its outcome as a question of yes or no (`as_two_classes`), for models that read no other."""
    context: int = 100
    test_rows: int = 100
    tasks: int = 10
    first: int = 0
    """Number of the first task: later ones are new to an experiment whose rule was made after a look at earlier ones."""
    missing: float = 0.0
    """Of the source "cohort": share of acquirable values hidden on top of what the table lacks."""
    budget: int = 8
    model: str = ""
    """A model trained for this family; empty: the experiment's."""
    pool: int = 0
    """Rows of the table that this model was trained on the covariates of, as `pool` of its prior's data says: tasks are of the
    other rows (or pictures)."""

    def __post_init__(self) -> None:
        check_least(
            self, f"families ({self.name})", context=1, test_rows=1, tasks=1, first=0, missing=0, budget=0, pool=0
        )
        if self.source not in SOURCES:
            raise ConfigError(
                f"Family {self.name!r} has the source {self.source!r}; choose one of {', '.join(SOURCES)}."
            )
        if self.pool and self.source == "prior":
            raise ConfigError(
                f"Family {self.name!r} has a pool, but its source {self.source!r} has no rows of its own."
            )

    def with_missingness_scale(self, scale: float) -> Family:
        """The same tasks with a share of their largest retrospective missingness."""
        missingness = {**self.settings.get("missingness", {}), "scale": scale}
        return replace(self, settings={**self.settings, "missingness": missingness})


def draw(family: Family, index: int, data: Path, *, context: int | None = None, complete: bool = False) -> Trial:
    """Task `index`, counted from the family's first. context: in place of the family's, of the same rows; complete: every
    value of the rows decided about can be asked for, whatever the context lacks."""
    rows, number = context or family.context, family.first + index
    if family.source == "cohort":
        cohort = cohort_of(family, data)
        rows = min(rows, _most_context(family, cohort))
        return draw_trial(cohort, Cell(family.name, rows, family.missing, number), family.test_rows)
    generator = torch.Generator().manual_seed(zlib.crc32(family.name.encode()) + 1_000_003 * number)
    prior, features, groups = prior_of(family, data)
    whole, test_rows = max(rows, family.context), family.test_rows
    if family.source == "semi_synthetic":
        cohort = cohort_of(family, data)
        whole = min(whole, _most_context(family, cohort))
        rows, test_rows = min(rows, whole), min(test_rows, len(cohort) - whole)
    batch = prior.sample(generator, 1, whole + test_rows, features)
    trial = task_trial(batch, 0, rows, test_rows, family.name, complete=complete)
    return trial if groups is None else _with_groups(trial, groups)


def cohort_of(family: Family, data: Path, part: str = "test") -> Cohort:
    """The family's table, or the rows of it that its model never saw; part "train": those that it saw."""
    found = find_cohort(family.data, data)
    cohort = found.load()
    # Of the whole table, so that both parts are asked the same about the same features.
    cohort = as_two_classes(cohort) if family.two_classes else cohort
    cohort = fewer_features(cohort, family.features) if family.narrowed else cohort
    # No model was trained on a table that is made up.
    if 0 < family.pool < len(cohort) and not (found.made_up and part == "test"):
        return cohort.rows(rows_of(DataChoice(pool=family.pool, part=part), len(cohort)))
    return cohort


def as_two_classes(cohort: Cohort) -> Cohort:
    """The most frequent class against all others, a number by whether it is above the table's median."""
    outcome, classes = cohort.schema.outcome, ("no", "yes")
    if cohort.kind == "continuous":
        y = cohort.y > np.median(cohort.y)
        outcome = replace(outcome, name=f"{outcome.name} is above its median", kind="binary", classes=classes, unit="")
    else:
        largest = np.bincount(cohort.y).argmax()
        y = cohort.y == largest
        name = f"{outcome.name} is {cohort.classes[largest]}"
        outcome = replace(outcome, name=name, kind="binary", classes=classes)
    # The rows as read hold the outcome of before, so they do not travel along.
    return Cohort(replace(cohort.schema, outcome=outcome), cohort.x, y, cohort.name)


def fewer_features(cohort: Cohort, most: int) -> Cohort:
    """Acquirable features before others, and of each those recorded most often, in the table's order."""
    # `lexsort` has its first key last; it is stable, so of features recorded alike the earlier one stays.
    kept = np.sort(np.lexsort([-cohort.r.mean(0), ~cohort.acquirable])[:most])
    schema = replace(cohort.schema, features=tuple(cohort.features[column] for column in kept))
    # The rows as read hold what is left out here, so they do not travel along.
    return Cohort(schema, cohort.x[:, kept], cohort.y, cohort.name)


def digits_of(family: Family, data: Path) -> dict[str, Any]:
    """Pictures and labels: all, or those that the family's model never saw."""
    arrays = find_digits(data).arrays
    if not 0 < family.pool < len(arrays["labels"]):
        return arrays
    rows = rows_of(DataChoice(pool=family.pool, part="test"), len(arrays["labels"]))
    return {name: values[rows] for name, values in arrays.items()}


def _most_context(family: Family, cohort: Cohort) -> int:
    """So many rows leave those to decide about, or a third of a table that is short."""
    return max(len(cohort) - family.test_rows, 2 * len(cohort) // 3)


def prior_of(family: Family, data: Path):
    """A prior, the number of features to ask it for, and the actions that uncover them."""
    if family.source == "digits":
        arrays = digits_of(family, data)
        if family.prior == STUDY_DIGITS:
            blocks = build_prior(STUDY_DIGITS, family.settings, **arrays)
            return blocks, blocks.features, None  # type: ignore[attr-defined]
        digits = build_prior("digits", family.settings, **arrays)
        return digits, digits.features, digits.groups.numpy()  # type: ignore[attr-defined]
    if family.source == "semi_synthetic":
        cohort = cohort_of(family, data)
        arrays = {"x": cohort.x, "acquirable": cohort.acquirable, "categorical": cohort.categorical}
        return build_prior("semi_synthetic", family.settings, **arrays), min(family.features, cohort.x.shape[1]), None
    return build_prior(family.prior, family.settings), family.features, None


def _with_groups(trial: Trial, groups: np.ndarray) -> Trial:
    context = trial.context
    cohort = Cohort.from_arrays(
        context.x,
        context.y,
        kind=context.kind,
        acquirable=context.acquirable,
        groups=[f"block {g}" for g in groups],
        classes=context.classes or None,
        name=context.name,
    )
    return replace(trial, context=cohort)


def stand_ins(families: tuple[Family, ...], data: Path) -> list[str]:
    """A sentence for each data set that is absent, on its stand-in, for each that is too short, and for each outcome that is
    asked as a question of yes or no."""
    notes = []
    for family in families:
        if family.source in ("cohort", "semi_synthetic"):
            found = find_cohort(family.data, data)
            cohort = cohort_of(family, data)
            notes += [found.note, _apart(family, found), _shorter(family, cohort), _asked(family, cohort)]
        if family.source == "digits":
            notes.append(find_digits(data).note)
    return [note for note in dict.fromkeys(notes) if note]


def data_marks(families: Iterable[Family], data: Path) -> list[str]:
    """Of the data sets that their tasks are drawn from: a changed one, or a stand-in for it, has another mark."""
    marks = {}
    for family in families:
        if family.source == "digits":
            marks[family.source] = find_digits(data).mark
        elif family.source != "prior":
            marks[family.data] = find_cohort(family.data, data).mark
    return [f"{name}: {mark}" for name, mark in sorted(marks.items())]


def _apart(family: Family, found: FoundCohort) -> str:
    if found.made_up or not 0 < family.pool < len(found.load()):
        return ""
    return f"{family.name}: of the rows outside the {family.pool:,} whose covariates its model was trained on."


def _shorter(family: Family, cohort: Cohort) -> str:
    most = _most_context(family, cohort)
    if family.context <= most:
        return ""
    return f"{family.name}: contexts of {most} rows in place of {family.context}, because the table has {len(cohort)}."


def _asked(family: Family, cohort: Cohort) -> str:
    return f"{family.name}: asked whether {cohort.schema.outcome.name}." if family.two_classes else ""

"""Random states of patients, from tables and priors of many kinds: what the pages on gains and foreseen results ask about.

Shared tables where they are there, those that scikit-learn brings, and tasks of the priors: 50 to 3,000 rows of context, 5
to 64 features, all kinds of outcome.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from l2m_core.answering import devices
from l2m_core.cli import at_least
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError, RangeWarning
from l2m_core.memory import L2M, CohortMemory
from l2m_core.paths import folder_to_write
from l2m_core.schema import did_you_mean
from train.study.evaluation.cells import Cell, Trial, draw_trial
from train.study.evaluation.manifest import Source, default_data_folder, read_manifest
from train.study.experiments.datasets import bundled_cohort
from train.study.experiments.families import Family, draw

CONTEXTS = (50, 400, 2000)  # rows; cohorts take them in turn
BUNDLED_CONTEXTS = {"breast_cancer": 100, "wine": 90, "diabetes": 200}
# Tasks of the priors, beside tables: short, wide, long, many classes, continuous.
GENERATED = (
    Family("generated_short", prior="synthetic", features=8, context=100, test_rows=60),
    Family("generated_wide", prior="synthetic", features=64, context=300, test_rows=60),
    Family("generated_long", prior="synthetic", features=20, context=3000, test_rows=60),
    Family("generated_findings", prior="findings", features=16, context=400, test_rows=60),
    Family(
        "generated_number",
        prior="synthetic",
        settings={"outcome": "continuous"},
        features=12,
        context=400,
        test_rows=60,
    ),
)


@dataclass(frozen=True)
class NamedTrial:
    """A trial under a name."""

    name: str
    trial: Trial
    family: str = ""
    """Of a task of the priors: the family that it was drawn from."""


def sources(folder: Path, tasks: int = 1, only: Collection[str] = ()) -> Iterator[NamedTrial]:
    """Shared tables where they are there, those that scikit-learn brings, and so many tasks of each family of the priors; of
    these names, where some are given."""
    makers = _makers(folder, tasks)
    for name in only:
        if name not in makers:
            raise ConfigError(f"--only: there is no cohort '{name}'.{did_you_mean(name, makers)}")
    # Names are known before any table is read, so that a misspelt one is refused at once.
    return (make() for name, make in makers.items() if not only or name in only)


def _makers(folder: Path, tasks: int) -> dict[str, Callable[[], NamedTrial]]:
    """Name → how its trial is made."""
    makers: dict[str, Callable[[], NamedTrial]] = {}
    tables = read_manifest(folder) if (folder / "manifest.yaml").is_file() else []
    for index, table in enumerate(tables):
        makers[table.name] = partial(_of_table, table, CONTEXTS[index % len(CONTEXTS)])
    for name, context in BUNDLED_CONTEXTS.items():
        makers[name] = partial(_bundled, name, context)
    for family, index in product(GENERATED, range(tasks)):
        name = f"{family.name}_{index}" if index else family.name
        makers[name] = partial(_generated, name, family, index)
    return makers


def _of_table(table: Source, context: int) -> NamedTrial:
    return NamedTrial(table.name, _trial(table.load(), table.name, context))


def _bundled(name: str, context: int) -> NamedTrial:
    return NamedTrial(name, _trial(bundled_cohort(name), name, context))


def _generated(name: str, family: Family, index: int) -> NamedTrial:
    return NamedTrial(name, draw(family, index, Path()), family.name)


def _trial(cohort: Cohort, name: str, context: int) -> Trial:
    """At most `context` rows to learn from, at least 40 others to ask about."""
    return draw_trial(cohort, Cell(name, max(20, min(context, len(cohort) - 40)), 0.0, 0), test_rows=60)


def random_state(cohort: Cohort, trial: Trial, generator: np.random.Generator) -> tuple[int, np.ndarray]:
    """A row that is asked about, and (d,) what is known of it: its baseline, and a random share of its other values."""
    row = int(generator.integers(len(trial.x)))
    is_known = ~np.isnan(trial.x[row]) & (
        ~cohort.acquirable | (generator.random(len(cohort.names)) < generator.random())
    )
    return row, np.where(is_known, trial.x[row], np.nan).astype(np.float32)


def options(command: str, purpose: str | None) -> argparse.ArgumentParser:
    """What every command that looks at random states is told: which cohorts, how many states, and where the page goes."""
    parser = argparse.ArgumentParser(prog=f"python -m train {command}", description=purpose)
    parser.add_argument("--data", type=Path, default=default_data_folder(), help="cohorts with a manifest.yaml")
    devices.add_option(parser)
    parser.add_argument("--states", type=at_least(1), default=30, help="of each cohort")
    parser.add_argument("--only", nargs="*", default=[], help="names of cohorts, instead of all")
    parser.add_argument("--out", type=folder_to_write, default=Path("docs/results"))
    return parser


def in_random_states(
    model: L2M,
    chosen: Iterable[NamedTrial],
    states: int,
    look: Callable[[CohortMemory, Trial, np.random.Generator], pd.DataFrame],
) -> pd.DataFrame:
    """What `look` finds in so many states of each trial, one below the other, each row with its cohort, family and state."""
    tables = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        for source in chosen:
            memory = model.condition(source.trial.context)
            generator = np.random.default_rng(0)
            for state in range(states):
                found = look(memory, source.trial, generator)
                tables.append(found.assign(cohort=source.name, family=source.family, state=state))
            print(f"{source.name}: {states} states", flush=True)
    return pd.concat([table for table in tables if len(table)], ignore_index=True)

"""`python -m train long_cohorts`: what reading fewer rows of a long cohort costs, on held-out synthetic tasks.

Settings rest on it: how many rows are read together and in how many parts (`AnswerSettings.part_rows`, `most_parts`), how many
of a wide table (`most_cells`), how many every question but the first reads (`view_rows`), and up to how many a cohort is asked
how sure predictions should be (`l2m_core.answering.calibration`).
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.answering.calibration import best_exponent, cross_fitted
from l2m_core.cli import at_least, program, purpose
from l2m_core.cohort import Cohort
from l2m_core.errors import RangeWarning
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.metrics import log_loss, paired_interval
from l2m_core.paths import folder_to_write
from train.study.answer_settings import known_in_part
from train.study.evaluation.cells import Trial
from train.study.evaluation.report import publish
from train.study.experiments.families import Family, draw
from train.study.markdown import markdown_table

# Name of a variant → a memory of the cohort that has been read in that way. The first is what the others are compared with.
Variants = dict[str, Callable[[L2M, Cohort], CohortMemory]]


def reading(**settings: Any) -> Callable[[L2M, Cohort], CohortMemory]:
    """With other settings. The gain head is left as it is, since predictions are asked only."""

    def read(model: L2M, cohort: Cohort) -> CohortMemory:
        inference = dataclasses.replace(model.release.inference, aligned_states=0, **settings)
        return L2M(dataclasses.replace(model.release, inference=inference)).condition(cohort)

    return read


SPREAD = 0.5  # how far the logarithm of an exponent may lie from 0


def with_its_own_exponent(model: L2M, cohort: Cohort) -> CohortMemory:
    """Whatever its length, with the exponent of its own rows."""
    read = reading()
    memory = read(model, cohort)
    log_p, y = cross_fitted(cohort, lambda part: read(model, part).predict_array)
    return dataclasses.replace(memory, exponent=best_exponent(log_p, y, SPREAD))


@dataclasses.dataclass(frozen=True)
class Limit:
    """A limit, tasks beyond it, and ways to read them."""

    title: str
    family: Family
    binary: bool
    variants: Variants


PARTS = {
    "4,147 together": reading(part_rows=4147, most_parts=1),
    "2 × 2,048": reading(part_rows=2048, most_parts=2),
    "4 × 2,048": reading(part_rows=2048, most_parts=4),
    "4 × 1,024": reading(part_rows=1024, most_parts=4),
    "8 × 1,024": reading(part_rows=1024, most_parts=8),
}
WEAK = {"least_gain": 0.0, "temperature": [0.2, 0.7], "noiseless_share": 0.0}  # tests that tell little
LIMITS = (
    Limit(
        "Parts that are read, two classes",
        Family("long_parts", prior="synthetic", features=12, context=8192, test_rows=300),
        True,
        PARTS,
    ),
    Limit(
        "Parts that are read, two classes, tests that tell little",
        Family("long_parts_weak", prior="synthetic", settings=WEAK, features=10, context=8192, test_rows=300),
        True,
        PARTS,
    ),
    Limit(
        "Rows that the other questions read, several classes",
        Family("long_care", prior="findings", features=12, context=1500, test_rows=150),
        False,
        {
            name: reading(view_rows=rows, against_rest=0.75)  # the share of the answer that rests on those rows
            for name, rows in (("1,500 of 1,500", 1500), ("512", 512), ("256", 256))
        },
    ),
    Limit(
        "Sharpness of a long cohort, several classes",
        Family("long_sharp", prior="findings", features=12, context=420, test_rows=150),
        False,
        {"not asked": reading(), "its own": with_its_own_exponent},
    ),
    Limit(
        "Cells that are read of a wide table, two classes",
        Family("long_wide", prior="synthetic", features=80, context=4096, test_rows=100),
        True,
        {
            "4,096 of 4,096": reading(most_cells=0),
            "2,962: 240,000 cells": reading(most_cells=240_000),
            "1,580: 128,000 cells": reading(most_cells=128_000),
            "790: 64,000 cells": reading(most_cells=64_000),
        },
    ),
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=program("train", "long_cohorts"), description=purpose(__doc__))
    parser.add_argument("--model", default="general", help="a released model's name or folder")
    parser.add_argument("--tasks", type=at_least(1), default=10, help="for each of the limits")
    parser.add_argument("--only", default="", help="limits with this in their title, printed and not written to --out")
    parser.add_argument("--out", type=folder_to_write, default=Path("docs/results"))
    given = parser.parse_args(arguments)
    model = load(given.model)
    parts = [HEAD, f"`python -m train long_cohorts --tasks {given.tasks}`, model {model.fingerprint[:12]}."]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        for limit in LIMITS:
            if given.only in limit.title:
                parts += [f"## {limit.title}", markdown_table(judge(model, limit, given.tasks))]
    page = "\n\n".join(parts) + "\n"
    if given.only:
        print(page)
    else:
        publish(given.out / "long_cohorts.md", page)
    return 0


def judge(model: L2M, limit: Limit, tasks: int) -> pd.DataFrame:
    """Mean log loss of each way of reading, and what it loses to the first, paired over tasks."""
    losses = np.array(
        [
            [log_loss(read(model, trial.context).predict_array(x), trial.y) for read in limit.variants.values()]
            for trial, x in islice(drawn(limit), tasks)
        ]
    )
    rows = []
    for index, name in enumerate(limit.variants):
        lost = losses[:, index] - losses[:, 0]
        interval = str(paired_interval(lost)) if index else "—"
        rows.append({"read": name, "log_loss": losses[:, index].mean(), "lost": interval, "tasks": len(losses)})
    return pd.DataFrame(rows)


def drawn(limit: Limit) -> Iterator[tuple[Trial, np.ndarray]]:
    """Tasks with as many classes as the limit is about, and their rows as they are known."""
    for index in count():
        trial = draw(limit.family, index, Path())
        if (trial.context.n_classes == 2) is limit.binary:
            yield trial, known_in_part(trial.x, index)


HEAD = """# Reading fewer rows of a long cohort, on held-out synthetic tasks

Log loss in nats, mean over tasks; queries are known in random part. `lost`: nats against the first line, with a 95% interval
over tasks; below 0 is better."""

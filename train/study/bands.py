"""`python -m train bands`: whether an uncertainty band is as wide as answers of new cohorts lie apart.

A band tells how far another cohort of as many rows would move the answer, from bootstrap samples of the one that is there; of
a large cohort the samples have only some of the rows, and `l2m_core.step_through.explanation.SCATTER` says by how much less
whole cohorts scatter. Here a table is cut into cohorts of equal size, whose answers for the same patients lie as far apart as
they do, and the first of them is sampled.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from l2m_core.cli import at_least, program, purpose
from l2m_core.cohort import Cohort
from l2m_core.errors import RangeWarning
from l2m_core.learn.checkpoints import write_text
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.paths import folder_to_write
from l2m_core.step_through.explanation import SCATTER, band_of, shown_of
from train.study.answer_settings import known_in_part
from train.study.evaluation.manifest import read_manifest
from train.study.experiments.families import Family, draw
from train.study.markdown import markdown_table

COHORTS = 8  # of each size; and as many samples, so that both widths are estimated alike
PATIENTS = 40
LEVEL = 0.9
ROWS = (100, 400, 1000)
SHARES = (1.0, 0.5, 0.1)
FEWEST_ROWS = 40  # of a sample
SQUARE_ROOT = 0.5
KINDS = ("synthetic", "findings", "patterns", "signs", "additive")


@dataclass(frozen=True)
class Source:
    """A table to be cut into cohorts, and patients who are in none of them. x: (patients, d), known in part."""

    name: str
    table: Cohort
    x: np.ndarray

    def cohorts(self, rows: int) -> list[Cohort]:
        """Of so many rows each, which share none."""
        return [self.table.rows(np.arange(k * rows, (k + 1) * rows)) for k in range(COHORTS)]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=program("train", "bands"), description=purpose(__doc__))
    parser.add_argument("--model", default="general", help="a released model's name or folder")
    parser.add_argument("--tasks", type=at_least(1), default=2, help="generated tables of each kind")
    parser.add_argument("--rows", type=at_least(FEWEST_ROWS), nargs="+", default=ROWS, help="sizes of the cohorts")
    parser.add_argument("--data", type=Path, help="a folder of real cohorts with a manifest, whose long ones are added")
    parser.add_argument("--out", type=folder_to_write, default=Path("docs/results"))
    given = parser.parse_args(arguments)
    model, found, page = load(given.model), [], ""
    rows = f" --rows {' '.join(map(str, given.rows))}" if tuple(given.rows) != ROWS else ""
    command = f"`python -m train bands --tasks {given.tasks}{rows}{' --data FOLDER' if given.data else ''}`"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        for kind, sources in (("generated", generated(given.tasks, max(given.rows))), ("real", real(given.data))):
            for source in sources:
                widths = [{"tables": kind, **row} for row in judge(model, source, given.rows)]
                found += widths
                print(f"{source.name}: {len(widths) or 'too few rows for any'} widths", flush=True)
                page = page_of(pd.DataFrame(found), f"{command}, model {model.fingerprint[:12]}.")
                given.out.mkdir(parents=True, exist_ok=True)
                # After each table, so that a run that is cut short leaves what it has measured.
                write_text(given.out / "bands.md", page)
    print(page)
    return 0


def generated(tasks: int, most_rows: int) -> Iterator[Source]:
    """Tables of mechanisms of several kinds."""
    for kind in KINDS:
        family = Family(f"bands_{kind}", prior=kind, features=12, context=COHORTS * most_rows, test_rows=PATIENTS)
        for index in range(tasks):
            trial = draw(family, index, Path())
            yield Source(f"{kind} {index + 1}", trial.context, known_in_part(trial.x, index))


def real(data: Path | None) -> Iterator[Source]:
    """All of the folder, each in random order; `judge` passes over sizes for which one has too few rows."""
    for source in read_manifest(data) if data else []:
        cohort = source.load()
        mixed = cohort.rows(np.random.default_rng(0).permutation(len(cohort)))
        yield Source(source.name, mixed.rows(np.arange(PATIENTS, len(mixed))), known_in_part(mixed.x[:PATIENTS], 0))


def judge(model: L2M, source: Source, sizes: Sequence[int]) -> Iterator[dict[str, object]]:
    """For each size and share of rows in a sample, how wide the band is beside where answers of new cohorts lie."""
    for rows in sizes:
        if COHORTS * rows > len(source.table):
            continue
        read = [model.condition(cohort) for cohort in source.cohorts(rows)]
        answers = np.stack([shown(memory, source.x) for memory in read])  # (cohorts, patients, K)
        apart = width(answers, answers.mean(0), 1.0)
        for share in SHARES:
            if share * rows < FEWEST_ROWS:
                continue
            samples = read[0].resampled(COHORTS, rows=round(share * rows))
            drawn = np.stack([shown(sample, source.x) for sample in samples])
            yield {
                "table": source.name,
                "rows": rows,
                "share": share,
                "ratio": width(drawn, answers[0], share) / apart,
                "by_square_root": width(drawn, answers[0], share, SQUARE_ROOT) / apart,
            }


def shown(memory: CohortMemory, x: np.ndarray) -> np.ndarray:
    """(patients, K)"""
    return shown_of(memory.answer(x).prediction)


def width(drawn: np.ndarray, value: np.ndarray, share: float, scatter: float = SCATTER) -> float:
    """Mean over patients and classes of how wide the band is. drawn: (count, patients, K)"""
    low, high = band_of(drawn, value, [share] * len(drawn), LEVEL, scatter)
    return float((high - low).mean())


def page_of(found: pd.DataFrame, command: str) -> str:
    """found: rows of `judge`."""
    groups = found.groupby(["tables", "rows", "share"], as_index=False, sort=False)
    table = groups.agg(number=("table", "size"), ratio=("ratio", spread), by_square_root=("by_square_root", spread))
    return "\n\n".join([HEAD, command, markdown_table(table), "## Each table", markdown_table(found)]) + "\n"


def spread(ratios: pd.Series) -> str:
    """Their geometric mean, the lowest and the highest."""
    return f"{np.exp(np.log(ratios).mean()):.2f} [{ratios.min():.2f}, {ratios.max():.2f}]"


HEAD = f"""# Uncertainty bands beside answers of new cohorts

A table is cut into {COHORTS} cohorts of `rows` rows. Their answers for the same {PATIENTS} patients, known in random part, lie
apart; the band is what a step-through shows of the first of them, from {COHORTS} samples that have a `share` of its rows.
`ratio`: how wide the band is, over where {LEVEL:.0%} of the cohorts' answers lie, both as means over patients (chances of each
class, or the mean of a continuous outcome): geometric mean over tables, the lowest and the highest. Below 1 the band is too
narrow. `by_square_root`: the same, were answers of a share of the rows taken to scatter by its root more."""

"""Seconds per task of each method."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from train.study.experiments import comparison, figures
from train.study.experiments.families import stand_ins
from train.study.experiments.verdicts import ClaimVerdict, finished, judge_others

TITLE = "Runtimes on a new task"
CLAIM = (
    '"L2M operates directly on datasets with retrospective missingness and performs the task in-context, eliminating per-task '
    'retraining." Its table has medians of 11.65 s (classifier, 300 epochs), 37.89 s (DIME, 50) and 52.91 s (GDFS, 50) a task, '
    "on its own machine."
)
RULE = (
    "Seconds of learning and answering together: fewer than each other method's, paired by task, with the interval of the "
    "difference above zero."
)
EFFECT = "Seconds; the smallest difference worth seeing is a tenth of one."
GATED = ""


@dataclass(frozen=True)
class RuntimesSettings(comparison.ComparisonSettings):
    methods: tuple[str, ...] = ("l2m", "mlp_random", "gdfs", "dime", "dqn")


SETTINGS = RuntimesSettings


jobs = comparison.jobs
work = comparison.run_methods


def caption(settings: RuntimesSettings, data: Path) -> list[str]:
    return [
        "Seconds of one thread's processor time: `fit` is training on the context (for L2M, reading it once), `query` "
        "is predicting and ranking for all rows at all steps. L2M's pretraining is paid once, before any task, and is "
        "not in these numbers.",
        *stand_ins(settings.families, data),
    ]


def table(records: list[dict]) -> pd.DataFrame:
    frame = pd.DataFrame(finished(records))
    frame["seconds"] = frame["fit_seconds"] + frame["query_seconds"]
    grouped = frame.groupby(["family", "method"], sort=False)
    medians = grouped[["fit_seconds", "query_seconds", "seconds"]].median().add_prefix("median_")
    return medians.assign(total_seconds=grouped["seconds"].sum(), tasks=grouped.size()).reset_index()


def figure(table: pd.DataFrame):
    return figures.bars(table, "method", "median_seconds", "family", "method", "median seconds per task", log=True)


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    whole = [r if r.get("error") else {**r, "seconds": r["fit_seconds"] + r["query_seconds"]} for r in records]
    return judge_others(whole, "seconds", "Seconds saved against {}", 0.1)

"""Gains by context length and by retrospective missingness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from train.study.experiments import comparison, figures
from train.study.experiments.comparison import Run, one_by_one, run_methods, summarise_groups, tasks_of
from train.study.experiments.experiment import Job
from train.study.experiments.families import stand_ins
from train.study.experiments.inference import NONE_STATED
from train.study.experiments.verdicts import (
    NOT_TESTABLE,
    ClaimVerdict,
    all_of,
    finished,
    judge,
    named_pairs,
)

TITLE = "Gains by context length and by retrospective missingness"
CLAIM = (
    '"A key finding is that L2M delivers the largest benefits in regimes with shorter contexts and higher rates of '
    'retrospective missingness compared to task-specific models."'
)
RULE = (
    "Gain (log loss of a task-specific method minus that of L2M's, mean over the steps), paired by task, in each family for each "
    "task-specific method: larger at the shortest context than at the longest, and larger at the largest missingness than at "
    "none, each with its interval above zero. The interval is of the middle difference, by signed ranks (Hodges and Lehmann): "
    "with few rows a task-specific method now and then is so sure of a wrong value that single tasks cost tens of nats, and no "
    "mean of them is stable. A first run, judged by means over both families, had left no verdict for that reason; this rule was "
    "made after it, and is judged on tasks that were not in it."
)
EFFECT = NONE_STATED
GATED = "l2m"
WITHIN = ("family", "task", "variant")


@dataclass(frozen=True)
class ContextLengthSettings(comparison.ComparisonSettings):
    methods: tuple[str, ...] = ("l2m", "l2m_random", "gdfs")
    lengths: tuple[int, ...] = (50, 100, 200, 500, 900)
    missingness: tuple[float, ...] = (0.0, 0.5, 0.75, 1.0)
    """Shares of the largest missingness, in the context only: of the rows decided about everything can be had."""
    compared_at: float = 1.0
    """The share at which lengths are compared."""


SETTINGS = ContextLengthSettings


def jobs(settings: ContextLengthSettings, data: Path) -> list[Job]:
    runs = []
    longest = max(settings.lengths)
    for run in tasks_of(settings.families, settings.methods):
        # All lengths are cut from one task of the longest, so that they differ in length alone.
        whole = replace(run.family.with_missingness_scale(settings.compared_at), context=longest)
        for length in settings.lengths:
            runs.append(Run(whole, run.index, run.methods, f"context {length}", context=length, complete=True))
        for scale in settings.missingness:
            scaled = run.family.with_missingness_scale(scale)
            runs.append(Run(scaled, run.index, run.methods, f"missing {scale:g}", complete=True))
    return one_by_one(runs, settings, data)


work = run_methods


def caption(settings: ContextLengthSettings, data: Path) -> list[str]:
    return stand_ins(settings.families, data)


def table(records: list[dict]) -> pd.DataFrame:
    """Gain: log loss of the other method minus that of L2M's, mean over budgets, per task; its mean and its median over tasks."""
    frame = pd.DataFrame(finished(records))
    wide = frame.pivot_table(index=list(WITHIN), columns="method", values="log_loss").reset_index()
    parts = []
    for other in [method for method in dict.fromkeys(frame["method"]) if method != "l2m"]:
        parts.append(
            wide.assign(against=other, gain=wide[other] - wide["l2m"], other=wide[other])[
                [*WITHIN, "against", "gain", "l2m", "other"]
            ]
        )
    long = pd.concat(parts)
    long[["what", "amount"]] = long["variant"].str.split(" ", expand=True)
    long["amount"] = long["amount"].astype(float)
    keys = ["family", "against", "what", "amount"]
    summary = summarise_groups(long, keys, "gain")
    middle = long.groupby(keys)["gain"].median().rename("median").reset_index()
    losses = long.groupby(keys)[["l2m", "other"]].mean().reset_index()
    return summary.merge(middle).merge(losses).sort_values(["what", "family", "against", "amount"], ignore_index=True)


def figure(table: pd.DataFrame):
    shown = table.assign(
        panel=table["what"].map({"context": "by context rows", "missing": "by missingness"}),
        line=table["family"].map(figures.named) + ", against " + table["against"].map(figures.named),
    )
    title = "context rows, or share of the largest missingness"
    # A mean hangs on a few tasks at which a method trained on them was sure of a wrong value.
    return figures.lines(shown, "amount", "median", "line", "panel", title, "median gain (nats)")


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    """Every family must show it: their gains differ tenfold in size, so that tasks of all would be those of one."""
    families = list(dict.fromkeys(record["family"] for record in records))
    own = [compared([r for r in records if r["family"] == family], figures.named(family)) for family in families]
    return all_of([part for parts in own for part in parts])


def compared(records: Sequence[dict], family: str) -> list[ClaimVerdict]:
    variants = {record["variant"] for record in records}
    lengths = sorted((v for v in variants if v.startswith("context")), key=lambda v: int(v.split()[1]))
    shares = sorted((v for v in variants if v.startswith("missing")), key=lambda v: float(v.split()[1]))
    others = [m for m in dict.fromkeys(r["method"] for r in records) if m not in ("l2m", "l2m_random")]

    def gain(variant: str, other: str) -> pd.Series:
        own = [r for r in records if r["variant"] == variant]
        return named_pairs(own, "log_loss", "l2m", other, ("family", "task"))

    parts = []
    for other in others:
        for more, less in ((lengths[0], lengths[-1]), (shares[-1], shares[0])):
            beyond = (gain(more, other) - gain(less, other)).dropna().to_numpy()
            what = f"{family}: gain over {figures.named(other)} at {more} beyond that at {less}, nats"
            parts.append(judge(beyond, what, by_rank=True))
    return parts or [ClaimVerdict(NOT_TESTABLE, f"{family}: no method trained on the task was run.")]

"""Gains by context length and by retrospective missingness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from train.study.experiments import comparison, figures
from train.study.experiments.comparison import Run, one_by_one, run_methods, summarise_groups, tasks_of
from train.study.experiments.experiment import Job, Verdict, all_of, finished, judge, named_pairs
from train.study.experiments.families import stand_ins

TITLE = "Gains by context length and by retrospective missingness"
CLAIM = (
    "Choosing what to measure gains more over a random order the longer the context is, and still gains when the "
    "retrospective record is missing as much as in training."
)
RULE = (
    "Gain (log loss of the random order minus that of L2M's, mean over the steps), paired by task: above zero at the "
    "longest context, larger there than at the shortest, and above zero at the largest missingness, each with its 95% "
    "interval."
)
WITHIN = ("family", "task", "variant")


@dataclass(frozen=True)
class ContextLengthSettings(comparison.ComparisonSettings):
    methods: tuple[str, ...] = ("l2m", "l2m_random")
    lengths: tuple[int, ...] = (50, 100, 200, 500, 900)
    missingness: tuple[float, ...] = (0.0, 0.5, 0.75, 1.0)
    """Shares of the largest missingness, in the context only: of the rows decided about everything can be had."""


SETTINGS = ContextLengthSettings


def jobs(settings: ContextLengthSettings, data: Path) -> list[Job]:
    runs = []
    longest = max(settings.lengths)
    for run in tasks_of(settings.families, settings.methods):
        # All lengths are cut from one task of the longest, so that they differ in length alone.
        whole = replace(run.family, context=longest)
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
    """Gain: log loss of the random order minus that of L2M's, mean over budgets, per task."""
    frame = pd.DataFrame(finished(records))
    wide = frame.pivot_table(index=list(WITHIN), columns="method", values="log_loss").reset_index()
    wide["gain"] = wide["l2m_random"] - wide["l2m"]
    wide[["what", "amount"]] = wide["variant"].str.split(" ", expand=True)
    wide["amount"] = wide["amount"].astype(float)
    summary = summarise_groups(wide, ["family", "what", "amount"], "gain")
    losses = wide.groupby(["family", "what", "amount"])[["l2m", "l2m_random"]].mean().reset_index()
    return summary.merge(losses).sort_values(["what", "family", "amount"], ignore_index=True)


def figure(table: pd.DataFrame):
    shown = table.assign(panel=table["what"].map({"context": "by context rows", "missing": "by missingness"}))
    title = "context rows, or share of the largest missingness"
    return figures.lines(shown, "amount", "gain", "family", "panel", title, "gain over random order (nats)")


def verdict(records: list[dict], table: pd.DataFrame) -> Verdict:
    variants = {record["variant"] for record in records}
    lengths = sorted((v for v in variants if v.startswith("context")), key=lambda v: int(v.split()[1]))
    most_missing = max((v for v in variants if v.startswith("missing")), key=lambda v: float(v.split()[1]))

    def gain(variant: str) -> pd.Series:
        own = [r for r in records if r["variant"] == variant]
        return named_pairs(own, "log_loss", "l2m", "l2m_random", ("family", "task"))

    longest, shortest = gain(lengths[-1]), gain(lengths[0])
    return all_of(
        [
            judge(longest.to_numpy(), f"Gain at {lengths[-1]} rows, nats"),
            judge(
                (longest - shortest).dropna().to_numpy(),
                f"Gain at {lengths[-1]} rows beyond that at {lengths[0]}, nats",
            ),
            judge(gain(most_missing).to_numpy(), f"Gain at {most_missing} of the largest missingness, nats"),
        ]
    )

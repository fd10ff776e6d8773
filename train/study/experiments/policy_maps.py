"""Heat maps of policies: the share of patients for whom each feature is chosen at each step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from train.study.experiments import comparison, figures
from train.study.experiments.comparison import Run, method_runs, record
from train.study.experiments.experiment import NOT_SEEN, NOT_TESTABLE, SEEN, Job, Verdict
from train.study.experiments.families import draw, stand_ins

TITLE = "What policies choose, step by step"
CLAIM = "L2M's choices concentrate on few features at first and depend on the patient as values become known."

RULE = (
    "At the first step the commonest choice is made for more than twice the share of patients that chance would give, "
    "and at the middle step for less than 95% of them, means over tasks."
)


@dataclass(frozen=True)
class PolicyMapsSettings(comparison.ComparisonSettings):
    methods: tuple[str, ...] = ("l2m", "gdfs", "dime")
    most_alike: float = 0.95
    """Choices depend on the patient where the commonest one is below this share at the middle step."""


SETTINGS = PolicyMapsSettings


jobs = comparison.jobs


def work(job: Job) -> list[dict]:
    """Shares by step of those for whom anything was chosen."""
    run: Run = job.part
    trial = draw(run.family, run.index, job.data)
    records = []
    for method_run in method_runs(run, trial, job.settings):
        found = record(run, method_run, trial)
        if method_run.rollout is not None:
            actions = method_run.rollout.actions
            asked = np.maximum((actions >= 0).sum(0), 1)
            free = np.flatnonzero(trial.context.acquirable)
            names = method_run.rollout.names
            found["shares"] = {names[j]: ((actions == j).sum(0) / asked).tolist() for j in free}
            found["alike"] = job.settings.most_alike
        records.append(found)
    return records


def caption(settings: PolicyMapsSettings, data: Path) -> list[str]:
    return ["Step 1 is the first acquisition.", *stand_ins(settings.families, data)]


def table(records: list[dict]) -> pd.DataFrame:
    rows = [
        {"family": r["family"], "method": r["method"], "feature": feature, "step": step, "share": share}
        for r in records
        for feature, shares in r.get("shares", {}).items()
        for step, share in enumerate(shares, 1)
    ]
    keys = ["family", "method", "feature", "step"]
    return pd.DataFrame(rows).groupby(keys, sort=False)["share"].mean().reset_index()


def figure(table: pd.DataFrame):
    maps = {}
    for (family, method), part in table.groupby(["family", "method"], sort=False):
        frame = part.pivot(index="feature", columns="step", values="share")
        maps[f"{figures.named(str(family))}: {figures.named(str(method))}"] = frame.loc[
            frame.iloc[:, 0].sort_values(ascending=False).index
        ]
    return figures.heat_maps(maps, "step", "feature", "share of patients")


def verdict(records: list[dict], table: pd.DataFrame) -> Verdict:
    own = [r for r in records if r["method"] == "l2m" and "shares" in r]
    if not own:
        return Verdict(NOT_TESTABLE, "L2M finished no task.")
    first, middle = [], []
    for r in own:
        top = np.max([shares for shares in r["shares"].values()], axis=0)
        first.append(top[0])
        middle.append(top[len(top) // 2])
    features = np.mean([len(r["shares"]) for r in own])
    concentrated, adaptive = np.mean(first) > 2 / features, np.mean(middle) < own[0]["alike"]
    return Verdict(
        SEEN if concentrated and adaptive else NOT_SEEN,
        f"The commonest choice is made for {np.mean(first):.0%} of patients at the first step (chance: "
        f"{1 / features:.0%}) and for {np.mean(middle):.0%} at the middle one ({len(own)} tasks).",
    )

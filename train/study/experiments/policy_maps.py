"""Heat maps of policies: the share of patients for whom each feature is chosen at each step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from train.study.experiments import comparison, figures
from train.study.experiments.comparison import Run, method_runs, record
from train.study.experiments.experiment import Job
from train.study.experiments.families import draw, stand_ins
from train.study.experiments.verdicts import NO_CLAIM, ClaimVerdict

TITLE = "What policies choose, step by step"
CLAIM = ""
RULE = "The study shows such maps as examples and claims nothing of them, so there is no verdict."
EFFECT = "None."
GATED = ""


@dataclass(frozen=True)
class PolicyMapsSettings(comparison.ComparisonSettings):
    methods: tuple[str, ...] = ("l2m", "gdfs", "dime")


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


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    """What the maps show of L2M, in numbers."""
    own = [r for r in records if r["method"] == "l2m" and "shares" in r]
    if not own:
        return ClaimVerdict(NO_CLAIM, "L2M finished no task.")
    top = [np.max([shares for shares in r["shares"].values()], axis=0) for r in own]
    first, middle = np.mean([t[0] for t in top]), np.mean([t[len(t) // 2] for t in top])
    chance = 1 / np.mean([len(r["shares"]) for r in own])
    return ClaimVerdict(
        NO_CLAIM,
        f"The commonest choice is made for {first:.0%} of patients at the first step (chance: {chance:.0%}) and for "
        f"{middle:.0%} at the middle one ({len(own)} tasks).",
    )

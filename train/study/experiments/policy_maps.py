"""Heat maps of policies: the share of patients for whom each feature is chosen at each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from train.study.evaluation.trial_runs import could_be_had
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
DRAWS = 100
"""Of a choice by chance."""
BY_CHANCE = " By chance: were each choice drawn among the features still open to the patient."


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
            found["chance"] = commonest_by_chance(actions, could_be_had(trial), np.random.default_rng(run.index))
        records.append(found)
    return records


def commonest_by_chance(actions: np.ndarray, to_be_had: np.ndarray, generator: np.random.Generator) -> list[float]:
    """(T,) the share of patients for whom the commonest choice of a step is made, were each choice drawn among the features that
    are still open to the patient then: more than one in as many, since few patients scatter, and more at later steps, when fewer
    features are open.

    actions: (n, T) what was chosen, -1 for nothing; to_be_had: (n, d) bool, open at the start.
    """
    is_open, shares = to_be_had.copy(), []
    for chosen in actions.T:
        asked = np.flatnonzero(chosen >= 0)
        ranks = np.where(is_open[asked], generator.random((DRAWS, len(asked), is_open.shape[1])), -1.0)
        drawn = ranks.argmax(2)  # (DRAWS, asked)
        commonest = [np.bincount(choices, minlength=1).max() for choices in drawn]
        shares.append(float(np.mean(commonest)) / max(1, len(asked)))
        is_open[asked, chosen[asked]] = False
    return shares


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
    first, middle = (f"{_mean_at(top, at):.0%} of patients" for at in (0.0, 0.5))
    chance = [r["chance"] for r in own if "chance" in r]  # records from before have none
    by_first, by_middle = (f" (by chance: {_mean_at(chance, at):.0%})" if chance else "" for at in (0.0, 0.5))
    return ClaimVerdict(
        NO_CLAIM,
        f"The commonest choice is made for {first} at the first step{by_first} and for {middle} at the middle one{by_middle} "
        f"({len(own)} tasks).{BY_CHANCE if chance else ''}",
    )


def _mean_at(by_step: Sequence[Sequence[float]], share: float) -> float:
    """Over tasks, at the step that lies this share of the way."""
    return float(np.mean([values[int(share * len(values))] for values in by_step]))

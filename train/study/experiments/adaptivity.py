"""Per-patient choices against one choice for all: the majority's at every step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.methods.l2m import L2MMethod
from train.study.evaluation.trial_runs import load_model, roll_out
from train.study.experiments.comparison import Run, by_step, log_loss_by_step, one_by_one, scores_of, tasks_of
from train.study.experiments.experiment import Job
from train.study.experiments.families import Family, draw, stand_ins
from train.study.experiments.inference import NONE_STATED
from train.study.experiments.verdicts import ClaimVerdict, any_of, judge, pairs

TITLE = "Adaptivity"
CLAIM = (
    '"We find that the instance-wise adaptive feature selection is beneficial for some tasks, but other simpler tasks do not '
    'require granular acquisition."'
)
RULE = (
    "Mean log loss over the steps, the majority's minus that of choices for each patient, paired by task: in one family at "
    "least the interval lies above zero, at a level corrected for the number of families."
)
EFFECT = NONE_STATED
GATED = "l2m"


@dataclass(frozen=True)
class AdaptivitySettings:
    families: tuple[Family, ...]
    model: str = "general"


SETTINGS = AdaptivitySettings


@dataclass(frozen=True)
class MajorityVote:
    """Asks for everybody what a method would ask for most patients; who cannot have it gets the next in votes."""

    method: Any

    def predict(self, x: np.ndarray, a: np.ndarray):
        return self.method.predict(x, a)

    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        scores = np.where(np.isnan(x), -np.inf, self.method.rank(x, a))
        votes = np.zeros(x.shape[1])
        voting = np.isfinite(scores).any(1)
        np.add.at(votes, scores[voting].argmax(1), 1.0)
        # Features without a vote go by their mean score, far below any vote.
        finite = np.isfinite(scores)
        mean = np.where(finite, scores, 0).sum(0) / np.maximum(finite.sum(0), 1)
        rank = votes + 0.5 * (mean.argsort().argsort() / len(mean))
        return np.where(np.isfinite(scores), rank, -np.inf)


def jobs(settings: AdaptivitySettings, data: Path) -> list[Job]:
    return one_by_one(tasks_of(settings.families, ("l2m",)), settings, data)


def work(job: Job) -> list[dict]:
    run: Run = job.part
    trial = draw(run.family, run.index, job.data)
    method = L2MMethod(seed=run.index, model=load_model(run.family.model or job.settings.model)).fit(trial.context)
    ways = {"l2m": method, "majority": MajorityVote(method)}
    facts = {"family": run.family.name, "task": run.index, "variant": run.variant}
    return [
        {**facts, "method": name, **scores_of(roll_out(way, trial, run.family.budget), trial)}
        for name, way in ways.items()
    ]


def caption(settings: AdaptivitySettings, data: Path) -> list[str]:
    return stand_ins(settings.families, data)


def table(records: list[dict]) -> pd.DataFrame:
    return by_step(records, ["log_loss_by_budget"])


figure = log_loss_by_step


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    families = list(dict.fromkeys(r["family"] for r in records))
    parts = []
    for family in families:
        own = [r for r in records if r["family"] == family]
        gained = pairs(own, "log_loss", "l2m", "majority", ("family", "task"))
        parts.append(judge(gained, f"{family}: below the majority's, nats", tests=len(families)))
    return any_of(parts)

"""What most experiments share: methods compared on tasks of families, and tables and figures of their scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from l2m_core.acquire.rollout import Rollout
from l2m_core.errors import ConfigError, RangeWarning
from l2m_core.methods.study import study_settings
from l2m_core.metrics import paired_interval
from train.study.evaluation.cells import Trial
from train.study.evaluation.scores import base_rate, informative_share, score
from train.study.evaluation.trial_runs import MethodChoice, MethodRun, could_be_had, run_trial, work_groups
from train.study.experiments import figures
from train.study.experiments.experiment import Job
from train.study.experiments.families import Family, draw


@dataclass(frozen=True)
class ComparisonSettings:
    """Of an experiment in which every method is asked about every task of some families."""

    families: tuple[Family, ...]
    model: str = "general"
    methods: tuple[str, ...] = ("l2m", "l2m_random", "gdfs", "dime", "dqn")
    method_settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the methods named, in place of their defaults."""
    baselines: str = "own"
    """"own": methods have this project's defaults; "study": the study's settings (l2m_core/methods/study.py)."""

    def __post_init__(self) -> None:
        if self.baselines not in ("own", "study"):
            raise ConfigError(f"baselines is {self.baselines!r}; it must be own or study.")
        for name in self.method_settings:
            if name not in self.methods:
                raise ConfigError(f"method_settings has settings of {name!r}, which is not among methods.")


@dataclass(frozen=True)
class Run:
    """One task of a family, for some methods. variant: how this run differs from others of the same task."""

    family: Family
    index: int
    methods: tuple[str, ...]
    variant: str = ""
    context: int | None = None
    complete: bool = False

    @property
    def key(self) -> str:
        return f"{self.family.name}/{self.index}/{self.variant}/{','.join(self.methods)}"


def one_by_one(runs: Sequence[Run], settings: Any, data: Path) -> list[Job]:
    """A job for each group of a run's methods; see work_groups."""
    pieces = []
    for run in runs:
        for group in work_groups(run.methods):
            part = replace(run, methods=group)
            pieces.append(Job(part.key, settings, part, data, methods=group))
    return pieces


def jobs(settings: ComparisonSettings, data: Path) -> list[Job]:
    """Every method on every task."""
    return one_by_one(tasks_of(settings.families, settings.methods), settings, data)


def tasks_of(families: Sequence[Family], methods: tuple[str, ...]) -> list[Run]:
    """Task by task over all families, so that a run cut short has something of each."""
    most = max((family.tasks for family in families), default=0)
    return [Run(f, i, methods) for i in range(most) for f in families if i < f.tasks]


def run_methods(job: Job) -> list[dict]:
    """Work of a job whose part is a Run."""
    run: Run = job.part
    trial = draw(run.family, run.index, job.data, context=run.context, complete=run.complete)
    return [record(run, method_run, trial) for method_run in method_runs(run, trial, job.settings)]


def method_runs(run: Run, trial: Trial, settings: ComparisonSettings) -> list[MethodRun]:
    choices = [MethodChoice(name, settings_of_method(name, settings)) for name in run.methods]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # the caption says what lies outside the trained range
        model = run.family.model or settings.model
        return run_trial(trial, choices, model=model, budget=run.family.budget, seed=run.index)


def settings_of_method(name: str, settings: ComparisonSettings) -> dict[str, Any]:
    own = study_settings(name) if settings.baselines == "study" else {}
    return {**own, **settings.method_settings.get(name, {})}


def record(run: Run, method_run: MethodRun, trial: Trial) -> dict:
    facts = {
        "family": run.family.name,
        "task": run.index,
        "variant": run.variant,
        "method": method_run.method,
        "kind": trial.context.kind,
        "context": len(trial.context),
    }
    if method_run.rollout is None:
        return {**facts, "error": method_run.error}
    seconds = {"fit_seconds": method_run.fit_seconds, "query_seconds": method_run.query_seconds}
    return {**facts, **scores_of(method_run.rollout, trial), **seconds}


def scores_of(rollout: Rollout, trial: Trial) -> dict:
    values = {**score(rollout, trial.y, trial.context), "base_rate": base_rate(trial.y, trial.context)}
    if trial.informative is not None:
        values |= informative_share(rollout, trial.informative, could_be_had(trial))
    return values


def by_step(records: Sequence[dict], scores: Sequence[str]) -> pd.DataFrame:
    """Mean over tasks and its interval, by family, method and step; `scores` are lists over steps."""
    rows = []
    for record in records:
        for name in scores:
            for step, value in enumerate(record.get(name) or []):
                rows.append({**_keys(record), "score": name.removesuffix("_by_budget"), "step": step, "value": value})
    table = pd.DataFrame(rows)
    return summarise_groups(table, ["family", "variant", "method", "score", "step"], "value")


def log_loss_by_step(table: pd.DataFrame):
    """The figure of what `by_step` gives."""
    shown = table[table["score"] == "log_loss"]
    return figures.lines(shown, "step", "value", "method", "family", "acquisitions", "log loss (nats)")


def summarise_groups(table: pd.DataFrame, keys: list[str], value: str) -> pd.DataFrame:
    """One row per group: mean, 95% interval (Student's t) over tasks, none where there is one task, and how many."""
    rows = []
    for group, part in table.dropna(subset=[value]).groupby(keys, sort=False):
        values = part[value].to_numpy(dtype=float)
        found = paired_interval(values)
        low, high = found.ends
        spread = {f"{value}_low": low, f"{value}_high": high, "tasks": len(values)}
        rows.append({**dict(zip(keys, group, strict=True)), value: found.mean, **spread})
    return pd.DataFrame(rows)


def _keys(record: dict) -> dict:
    return {name: record[name] for name in ("family", "variant", "method", "task")}

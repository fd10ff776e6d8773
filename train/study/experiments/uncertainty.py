"""How well the beliefs of partly known patients are calibrated, along random orders of measurement."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from l2m_core import metrics
from l2m_core.acquire.random_order import random_positions
from l2m_core.methods import make_method
from l2m_core.methods.l2m import L2MMethod
from l2m_core.settings import check_least
from train.study.evaluation.cells import Trial
from train.study.evaluation.scores import base_rate, with_floor
from train.study.evaluation.trial_runs import load_model
from train.study.experiments import figures
from train.study.experiments.comparison import summarise_groups, tasks_of
from train.study.experiments.experiment import Job
from train.study.experiments.families import Family, draw, stand_ins
from train.study.experiments.inference import SMALLEST
from train.study.experiments.verdicts import NOT_TESTABLE, ClaimVerdict, all_of, judge, pairs

TITLE = "Uncertainty along random trajectories"
CLAIM = (
    '"LTM outperforms task-specific MLP baselines in average task-level coverage for synthetic GP regression tasks across an '
    'acquisition trajectory of 1 to 10 features"; it "also achieves lower log loss and MSE". With drawn labels "the quality of '
    'uncertainty quantification is better than the task-specific MLP"; "performance on real tasks is mixed".'
)
RULE = (
    "Families whose outcomes are drawn: log loss, and where a family has them MSE, coverage error and KL to the truth, lie below "
    "the MLP's, paired by task, each with its interval above zero. Real outcomes, of which the study says that they are mixed, "
    "are published and decide nothing."
)
EFFECT = (
    "None is stated in numbers; the smallest differences worth seeing are 0.005 nats, 0.01 of the outcome's variance (MSE) and "
    "0.01 of coverage."
)
GATED = "l2m"
JUDGED = {
    "log_loss": "Log loss, nats,",
    "mse": "MSE",
    "coverage_error": "Coverage error",
    "kl_to_truth": "KL to the truth",
}
WORTH_SEEING = {"mse": 0.01, "coverage_error": 0.01}


@dataclass(frozen=True)
class UncertaintySettings:
    families: tuple[Family, ...]
    model: str = "general"
    other: str = "mlp_random"
    """The method that learns from the task alone."""
    steps: int = 10
    """Trajectories of 1 to so many features."""
    levels: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

    def __post_init__(self) -> None:
        check_least(self, "uncertainty", steps=1)


SETTINGS = UncertaintySettings


def jobs(settings: UncertaintySettings, data: Path) -> list[Job]:
    runs = tasks_of(settings.families, ("l2m", settings.other))
    return [Job(run.key, settings, run, data) for run in runs]


def work(job: Job) -> list[dict]:
    """Both methods are asked about the same partly known rows."""
    run, settings = job.part, job.settings
    trial = draw(run.family, run.index, job.data)
    own = L2MMethod(seed=run.index, model=load_model(run.family.model or settings.model)).fit(trial.context)
    other = make_method(settings.other, seed=run.index).fit(trial.context)
    facts = {"family": run.family.name, "task": run.index}
    records = []
    for step, a in enumerate(random_trajectories(trial, settings.steps, np.random.default_rng(run.index)), 1):
        for name, method in (("l2m", own), (settings.other, other)):
            prediction = method.predict(trial.x, a)
            if isinstance(prediction, np.ndarray):
                found = score_classes(prediction, trial)
            else:
                found = score_numbers(prediction, trial, settings)
            found["base_rate"] = base_rate(trial.y, trial.context)
            records.append({**facts, "step": step, "method": name, **found})
    return records


def random_trajectories(trial: Trial, steps: int, generator: np.random.Generator):
    """a: (n, d) bool after 1, 2, … random acquisitions of what each row has; baseline features are known throughout."""
    recorded = ~np.isnan(trial.x)
    open_cells = recorded & trial.context.acquirable
    position = random_positions(open_cells, generator)
    for step in range(1, min(steps, int(trial.context.acquirable.sum())) + 1):
        yield (recorded & ~trial.context.acquirable) | (open_cells & (position < step))


def score_numbers(prediction, trial: Trial, settings: UncertaintySettings) -> dict:
    scale = float(trial.context.y.std()) or 1.0
    covered = metrics.coverage(prediction, trial.y, np.array(settings.levels))
    return {
        "log_loss": float(-prediction.log_prob(trial.y).mean() - np.log(scale)),
        "mse": (metrics.rmse(prediction, trial.y) / scale) ** 2,
        "coverage": dict(zip(map(str, settings.levels), covered.tolist(), strict=True)),
        "coverage_error": float(np.abs(covered - settings.levels).mean()),
    }


def score_classes(p: np.ndarray, trial: Trial) -> dict:
    p = with_floor(p)
    found = {
        "log_loss": metrics.log_loss(p, trial.y),
        "brier": metrics.brier(p, trial.y),
        "auroc": metrics.auroc(p, trial.y),
    }
    if trial.probabilities is not None:
        truth = trial.probabilities
        found["kl_to_truth"] = float((truth * np.log(np.maximum(truth, 1e-12) / p)).sum(1).mean())
        found["brier_to_truth"] = float(((truth - p) ** 2).sum(1).mean())
    return found


def caption(settings: UncertaintySettings, data: Path) -> list[str]:
    return [
        "The truth of a BNN task is p(y | all features), so KL and Brier to it fall as "
        "features become known and reach 0 only with all of them. MSE and log density are of the outcome in standard "
        "deviations.",
        *stand_ins(settings.families, data),
    ]


def table(records: list[dict]) -> pd.DataFrame:
    """Scores over all steps, and coverage by nominal level."""
    rows = []
    for record in records:
        task = {name: record[name] for name in ("family", "method", "task")}
        for score in ("log_loss", "mse", "coverage_error", "brier", "auroc", "kl_to_truth", "brier_to_truth"):
            if record.get(score) is not None:
                rows.append({**task, "score": score, "level": "", "value": record[score]})
        for level, value in record.get("coverage", {}).items():
            rows.append({**task, "score": "coverage", "level": level, "value": value})
    keys = ["family", "score", "level", "method"]
    by_task = pd.DataFrame(rows).groupby([*keys, "task"], sort=False)["value"].mean().reset_index()
    return summarise_groups(by_task, keys, "value")


def figure(table: pd.DataFrame):
    covered = table[table["score"] == "coverage"]
    if covered.empty:
        shown = table[table["score"] == "log_loss"]
        return figures.bars(shown, "family", "value", "method", "family", "log loss (nats)")
    shown = covered.assign(level=covered["level"].astype(float))
    ideal = shown.drop_duplicates(["family", "level"]).assign(method="nominal", value=lambda t: t["level"])
    ideal = ideal.assign(value_low=ideal["value"], value_high=ideal["value"])
    return figures.lines(
        pd.concat([shown, ideal]), "level", "value", "method", "family", "nominal level", "share of outcomes covered"
    )


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    drawn = [r for r in records if not r.get("real")]
    if not drawn:
        return ClaimVerdict(NOT_TESTABLE, "No family's outcomes are drawn.")
    other = next(r["method"] for r in drawn if r["method"] != "l2m")
    parts = []
    for score, what in JUDGED.items():
        having = [r for r in drawn if r.get(score) is not None]
        if having:
            below = pairs(having, score, "l2m", other, ("family", "task"))
            parts.append(judge(below, f"{what} below {figures.named(other)}'s", WORTH_SEEING.get(score, SMALLEST)))
    return all_of(parts)

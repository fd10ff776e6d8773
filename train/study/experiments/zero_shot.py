"""The synthetic-prior model on real tasks, as it is and after fine-tuning on the task's own context."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import torch

from l2m_core.learn.finetune import FinetuneConfig, finetune
from l2m_core.methods.l2m import L2MMethod
from train.study.evaluation.trial_runs import load_model, roll_out
from train.study.experiments import comparison, figures
from train.study.experiments.comparison import Run, by_step, one_by_one, run_methods, scores_of, tasks_of
from train.study.experiments.experiment import Job, Verdict, all_of, finished, judge, pairs
from train.study.experiments.families import draw, stand_ins
from train.study.experiments.models import check_device, load_own_copy, with_module

TITLE = "Zero-shot on real tasks, and after fine-tuning"
CLAIM = (
    "Pretrained on synthetic tasks alone, L2M matches methods trained on the real task, and fine-tuning on the task "
    "improves it further."
)
RULE = (
    "Mean log loss over the steps, paired by task: zero-shot not above any method trained on the task by a hundredth of "
    "a nat or more, and fine-tuned below zero-shot, each with its 95% interval."
)
FINETUNED = "finetuned"
MARGIN = 0.01
"""Nats; what "matches" is read as."""


@dataclass(frozen=True)
class ZeroShotSettings(comparison.ComparisonSettings):
    methods: tuple[str, ...] = ("l2m", "gdfs", "dime", "dqn")
    finetune: FinetuneConfig = field(default_factory=FinetuneConfig)
    device: str = "cpu"
    """Where models are fine-tuned; "cuda" with a GPU. Questions are asked on the CPU."""


SETTINGS = ZeroShotSettings


def jobs(settings: ZeroShotSettings, data: Path) -> list[Job]:
    jobs = one_by_one(tasks_of(settings.families, (*settings.methods, FINETUNED)), settings, data)
    # The fine-tuned model is no method of its own: it depends on the model that it starts from.
    return [replace(job, methods=()) if job.methods == (FINETUNED,) else job for job in jobs]


def work(job: Job) -> list[dict]:
    run: Run = job.part
    return fine_tuned(job) if run.methods == (FINETUNED,) else run_methods(job)


def fine_tuned(job: Job) -> list[dict]:
    run: Run = job.part
    trial = draw(run.family, run.index, job.data)
    check_device(job.settings.device)
    name = run.family.model or job.settings.model
    first = load_own_copy(name, job.settings.device).release.module
    tuned = finetune(first, trial.context, job.settings.finetune, torch.Generator().manual_seed(run.index)).cpu()
    method = L2MMethod(seed=run.index, model=with_module(load_model(name), tuned, FINETUNED)).fit(trial.context)
    facts = {"family": run.family.name, "task": run.index, "variant": run.variant, "method": FINETUNED}
    return [{**facts, **scores_of(roll_out(method, trial, run.family.budget), trial)}]


def caption(settings: ZeroShotSettings, data: Path) -> list[str]:
    return stand_ins(settings.families, data)


def table(records: list[dict]) -> pd.DataFrame:
    return by_step(finished(records), ["log_loss_by_budget", "auroc_by_budget"])


figure = comparison.log_loss_by_step


def verdict(records: list[dict], table: pd.DataFrame) -> Verdict:
    within = ("family", "task")
    others = [m for m in dict.fromkeys(r["method"] for r in records) if m not in ("l2m", FINETUNED)]
    zero_shot = [
        judge(pairs(records, "log_loss", "l2m", m, within) + MARGIN, f"Below {figures.named(m)} + {MARGIN}, nats")
        for m in others
    ]
    tuned = judge(pairs(records, "log_loss", FINETUNED, "l2m", within), "Fine-tuned below zero-shot, nats")
    return all_of([*zero_shot, tuned])

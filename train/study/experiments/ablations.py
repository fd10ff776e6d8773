"""What full context attention is worth: CNP-like pooling and MAML-like inner updates, same backbone and prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from l2m_core import metrics
from l2m_core.answering.release import Release
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.learn.loop import LoopConfig
from l2m_core.learn.losses import PredictorLoss
from l2m_core.learn.policy import PolicyConfig, PolicyLoss
from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.memory import L2M
from l2m_core.methods.cnp import PooledCells, PooledRows
from l2m_core.methods.l2m import L2MMethod
from l2m_core.methods.maml import InnerUpdates
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.settings import to_plain
from train.priors import PriorChoice, priors_of
from train.study.evaluation.scores import with_floor
from train.study.evaluation.trial_runs import roll_out
from train.study.experiments import figures
from train.study.experiments.comparison import scores_of, summarise_groups
from train.study.experiments.experiment import Job, version_of
from train.study.experiments.families import Family, draw, stand_ins
from train.study.experiments.inference import NONE_STATED
from train.study.experiments.models import fingerprint, teach, training_device
from train.study.experiments.uncertainty import random_trajectories
from train.study.experiments.verdicts import ClaimVerdict, all_of, judge, pairs

TITLE = "Ablations: CNP-like pooling and MAML-like inner updates"
CLAIM = (
    '"a CNP-like approach leads to degradation in the quality and stability of uncertainty estimates", and "gradient-based '
    "adaptation at inference offers only modest improvements and rapidly overfits, indicating that the compact task "
    'representation acts as a bottleneck that the test-time adaptation cannot overcome."'
)
RULE = (
    "Log loss along random orders: full attention's below that of the CNP-like model, and below that of the same model with "
    "inner updates on top, paired by task, each with the interval of the difference above zero. What each loses along its own "
    "policy's order is published beside it."
)
EFFECT = NONE_STATED
GATED = ""  # its models are trained here, and the claim is about which of them is better
POOLED: dict[str, type[PooledCells] | type[PooledRows]] = {"cells": PooledCells, "rows": PooledRows}
KINDS: dict[str, Callable[[ModelConfig], nn.Module]] = {
    "attention": build_model,
    "cnp": lambda config: POOLED[config.encoder](config),
    # "based on the learned CNP task representation"
    "maml": lambda config: InnerUpdates(config, backbone=POOLED[config.encoder]),
}
RANDOM, OWN = "random", "own"
"""Orders of acquisition: drawn, or as the model's policy has them."""


@dataclass(frozen=True)
class AblationsSettings:
    families: tuple[Family, ...]
    """What the models are asked about; they learn from `prior`."""
    backbone: ModelConfig = field(default_factory=ModelConfig)
    prior: PriorChoice = field(default_factory=lambda: PriorChoice("bnn", {"outcome": "classes"}))
    stages: tuple[Stage, ...] = (Stage(steps=1000),)
    loop: LoopConfig = field(default_factory=LoopConfig)
    policy: PolicyConfig = field(default_factory=lambda: PolicyConfig("greedy", temperature=0.1, samples=1))
    policy_stages: tuple[Stage, ...] = ()
    """Of the policy, after those of the predictor; without any, orders are random only."""
    policy_loop: LoopConfig = field(default_factory=LoopConfig)
    backbone_rate: float = 0.1
    """Of all but the policy while it learns, as a share of the policy's rate."""
    device: str = "cpu"
    """Where the models are pretrained; "cuda" or "auto" with a GPU. Questions are asked on the CPU."""
    folder: str = "runs/reproduce/ablations"
    """Where the models' checkpoints are kept."""
    steps: int = 8
    """Features acquired."""
    seed: int = 0


SETTINGS = AblationsSettings


def jobs(settings: AblationsSettings, data: Path) -> list[Job]:
    """One for each kind: pretrain it, then ask it."""
    return [Job(kind, settings, kind, data) for kind in KINDS]


def work(job: Job) -> list[dict]:
    settings, kind = job.settings, job.part
    model = pretrained(kind, settings, Path(settings.folder) / f"{kind}-{version_of(job)}")
    records = []
    for family in settings.families:
        for index in range(family.tasks):
            trial = draw(family, index, job.data)
            method = L2MMethod(seed=index, model=model).fit(trial.context)
            facts = {"family": family.name, "task": index, "method": kind}
            for step, a in enumerate(random_trajectories(trial, settings.steps, np.random.default_rng(index)), 1):
                prediction = method.predict(trial.x, a)
                loss = (
                    metrics.log_loss(with_floor(prediction), trial.y)
                    if isinstance(prediction, np.ndarray)
                    else float(-prediction.log_prob(trial.y).mean())
                )
                records.append({**facts, "order": RANDOM, "step": step, "log_loss": loss})
            if settings.policy_stages:
                losses = scores_of(roll_out(method, trial, settings.steps), trial)["log_loss_by_budget"]
                records += [
                    {**facts, "order": OWN, "step": step, "log_loss": loss} for step, loss in enumerate(losses) if step
                ]
    return records


def pretrained(kind: str, settings: AblationsSettings, folder: Path) -> L2M:
    """The same seed, tasks and steps for every kind; goes on from its checkpoints if there are any."""
    device = training_device(settings.device)
    torch.manual_seed(settings.seed)
    module = KINDS[kind](settings.backbone).to(device)
    train_on(module, PredictorLoss(module), settings.stages, settings.loop, settings, folder)
    if settings.policy_stages:
        loss = PolicyLoss(module, settings.policy, keep_predicting=settings.backbone_rate > 0)
        train_on(module, loss, settings.policy_stages, settings.policy_loop, settings, folder / "policy")
    module.cpu().eval().requires_grad_(False)
    inference = AnswerSettings(temperature=1.0, policy="learned" if settings.policy_stages else "gain")
    return L2M(Release(kind, module, settings.backbone, TrainedRange(), inference, fingerprint(module)))


def train_on(
    module: nn.Module,
    loss: nn.Module,
    stages: tuple[Stage, ...],
    loop_config: LoopConfig,
    settings: AblationsSettings,
    folder: Path,
) -> None:
    """Trains the module in place, to its averaged weights."""
    teaches_policy = isinstance(loss, PolicyLoss)

    def rate_of(name: str) -> float:
        is_policy = any(part.startswith("policy") for part in name.split("."))
        return 1.0 if is_policy or not teaches_policy else settings.backbone_rate

    device = next(module.parameters()).device
    stream = EpisodeStream(priors_of(settings.prior), stages, settings.seed + int(teaches_policy), device)
    facts = {"model": asdict(settings.backbone), "job": to_plain(settings)}
    teach(module, loss, stream, loop_config, folder, facts, rate_of)


def caption(settings: AblationsSettings, data: Path) -> list[str]:
    steps, policy_steps = (sum(stage.steps for stage in stages) for stages in (settings.stages, settings.policy_stages))
    orders = f" Their policies are then taught greedily for {policy_steps:,} steps." if policy_steps else ""
    return [
        f"All three are pretrained here from scratch, on the prior {settings.prior.name}, for {steps:,} steps on the "
        f"same tasks: encoder {settings.backbone.encoder}, {settings.backbone.layers} layers of width "
        f"{settings.backbone.width}.{orders} Random orders are the same for all.",
        *stand_ins(settings.families, data),
    ]


def table(records: list[dict]) -> pd.DataFrame:
    return summarise_groups(pd.DataFrame(records), ["family", "order", "method", "step"], "log_loss")


def figure(table: pd.DataFrame):
    shown = table.assign(panel=table["family"] + ", " + table["order"] + " order")
    return figures.lines(shown, "step", "log_loss", "method", "panel", "acquisitions", "log loss (nats)")


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    within, drawn = ("family", "task"), [r for r in records if r["order"] == RANDOM]
    return all_of(
        [
            judge(pairs(drawn, "log_loss", "attention", kind, within), f"Full attention below {kind}, nats")
            for kind in KINDS
            if kind != "attention"
        ]
    )

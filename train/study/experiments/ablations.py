"""What full context attention is worth: CNP-like pooling and MAML-like inner updates, same backbone and prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from l2m_core import metrics
from l2m_core.answering.release import Release
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.learn.loop import Loop, LoopConfig
from l2m_core.learn.losses import PredictorLoss
from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.memory import L2M
from l2m_core.methods.cnp import PooledCells
from l2m_core.methods.l2m import L2MMethod
from l2m_core.methods.maml import InnerUpdates
from l2m_core.model.cells import Cells
from l2m_core.model.interface import ModelConfig
from l2m_core.settings import to_plain
from train.priors import PriorChoice, priors_of
from train.study.evaluation.scores import with_floor
from train.study.experiments import figures
from train.study.experiments.comparison import summarise_groups
from train.study.experiments.experiment import Job, version_of
from train.study.experiments.families import Family, draw, stand_ins
from train.study.experiments.models import fingerprint, training_device
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
    "inner updates on top, paired by task, each with the interval of the difference above zero."
)
EFFECT = "None is stated in numbers; the smallest difference worth seeing is 0.005 nats."
GATED = ""  # its models are trained here, and the claim is about which of them is better
KINDS: dict[str, Callable[[ModelConfig], nn.Module]] = {
    "attention": Cells,
    "cnp": PooledCells,
    "maml": partial(InnerUpdates, backbone=PooledCells),  # "based on the learned CNP task representation"
}


@dataclass(frozen=True)
class AblationsSettings:
    families: tuple[Family, ...]
    """What the models are asked about; they learn from `prior`."""
    backbone: ModelConfig = field(default_factory=ModelConfig)
    prior: PriorChoice = field(default_factory=lambda: PriorChoice("bnn", {"outcome": "classes"}))
    stages: tuple[Stage, ...] = (Stage(steps=1000),)
    loop: LoopConfig = field(default_factory=LoopConfig)
    device: str = "cpu"
    """Where the models are pretrained; "cuda" or "auto" with a GPU. Questions are asked on the CPU."""
    folder: str = "runs/reproduce/ablations"
    """Where the models' checkpoints are kept."""
    steps: int = 8
    """Features acquired in random order."""
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
            for step, a in enumerate(random_trajectories(trial, settings.steps, np.random.default_rng(index)), 1):
                prediction = method.predict(trial.x, a)
                loss = (
                    metrics.log_loss(with_floor(prediction), trial.y)
                    if isinstance(prediction, np.ndarray)
                    else float(-prediction.log_prob(trial.y).mean())
                )
                records.append({"family": family.name, "task": index, "method": kind, "step": step, "log_loss": loss})
    return records


def pretrained(kind: str, settings: AblationsSettings, folder: Path) -> L2M:
    """The same seed, tasks and steps for every kind; goes on from its checkpoint if there is one."""
    device = training_device(settings.device)
    torch.manual_seed(settings.seed)
    module = KINDS[kind](settings.backbone).to(device)
    stream = EpisodeStream(priors_of(settings.prior), settings.stages, settings.seed, device)
    facts = {"model": asdict(settings.backbone), "job": to_plain(settings)}
    loop = Loop(PredictorLoss(module), stream.episode, settings.stages, settings.loop, folder, facts=facts, quiet=True)
    if (folder / "checkpoints").is_dir():
        loop.resume()
    loop.run()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(loop.average[name])
    module.cpu().eval().requires_grad_(False)
    release = Release(kind, module, settings.backbone, TrainedRange(), AnswerSettings(), fingerprint(module))
    return L2M(release)


def caption(settings: AblationsSettings, data: Path) -> list[str]:
    steps = sum(stage.steps for stage in settings.stages)
    return [
        f"All three are pretrained here from scratch, on the prior {settings.prior.name}, for {steps} steps on the "
        f"same tasks, with {settings.backbone.layers} layers of width {settings.backbone.width}; orders are random and "
        f"the same.",
        *stand_ins(settings.families, data),
    ]


def table(records: list[dict]) -> pd.DataFrame:
    return summarise_groups(pd.DataFrame(records), ["family", "method", "step"], "log_loss")


def figure(table: pd.DataFrame):
    return figures.lines(table, "step", "log_loss", "method", "family", "acquisitions, random order", "log loss (nats)")


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    within = ("family", "task")
    return all_of(
        [
            judge(pairs(records, "log_loss", "attention", kind, within), f"Full attention below {kind}, nats")
            for kind in KINDS
            if kind != "attention"
        ]
    )

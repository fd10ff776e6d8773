"""`python -m train predictor`: pretrains a cells model on a prior, in stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch

from l2m_core.learn.held_out import draw_held_out, evaluate
from l2m_core.learn.loop import Loop, LoopConfig
from l2m_core.learn.losses import PredictorLoss
from l2m_core.learn.stages import ExerciseStream, Stage
from l2m_core.model.interface import ModelConfig, build
from train.config import to_plain
from train.priors import PriorChoice, priors_of


@dataclass(frozen=True)
class PredictorJob:
    """Pretraining of the predictor on a prior."""

    folder: str
    """Where checkpoints and logs go."""
    stages: tuple[Stage, ...]
    model: ModelConfig = field(default_factory=ModelConfig)
    prior: PriorChoice = field(default_factory=PriorChoice)
    loop: LoopConfig = field(default_factory=LoopConfig)
    seed: int = 0
    device: str = "cpu"
    stop_at: int = 0
    """When positive, stop after so many steps in all (the schedule stays that of the stages)."""


def run(job: PredictorJob, resume: bool) -> None:
    torch.set_num_threads(job.loop.threads)
    torch.manual_seed(job.seed)
    model = build(job.model).to(job.device)
    priors = priors_of(job.prior)
    stream = ExerciseStream(priors, job.stages, job.seed, job.device)
    held_out = draw_held_out(priors, job.device)
    loop = Loop(
        PredictorLoss(model),
        stream.exercise,
        job.stages,
        job.loop,
        Path(job.folder),
        facts={"job": to_plain(job), "model": to_plain(job.model)},
        evaluate=lambda model: evaluate(model, held_out),
    )
    if resume:
        loop.resume()
    loop.run(job.stop_at or None)

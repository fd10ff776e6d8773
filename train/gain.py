"""`python -m train gain`: teaches the gain head on a trained predictor, which stays as it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from l2m_core.learn.held_out import draw_held_out, evaluate_loss
from l2m_core.learn.loop import Loop, LoopConfig
from l2m_core.learn.losses import GainLoss
from l2m_core.learn.stages import ExerciseStream, Stage
from train.config import to_plain
from train.priors import PriorChoice, priors_of
from train.starting import load_initial, train_only


@dataclass(frozen=True)
class GainJob:
    """Training of the gain head."""

    folder: str
    """Where checkpoints and logs go."""
    init: str
    """The predictor: a job's folder, a checkpoint, or a released model's folder."""
    stages: tuple[Stage, ...]
    target: str = "expected"
    """"expected", "realised" or "mixed"; see GainLoss."""
    reveals: int = 2
    """Unknown features measured in turn for each query."""
    prior: PriorChoice = field(default_factory=PriorChoice)
    loop: LoopConfig = field(default_factory=LoopConfig)
    seed: int = 0
    device: str = "cpu"
    stop_at: int = 0
    """When positive, stop after so many steps in all (the schedule stays that of the stages)."""


def run(job: GainJob, resume: bool) -> None:
    torch.set_num_threads(job.loop.threads)
    torch.manual_seed(job.seed)
    model = load_initial(job.init, job.device)
    train_only(model, "gain")
    priors = priors_of(job.prior)
    loss = GainLoss(model, job.target, job.reveals)
    held_out = draw_held_out(priors, job.device, pools=1)
    loop = Loop(
        loss,
        ExerciseStream(priors, job.stages, job.seed, job.device).exercise,
        job.stages,
        job.loop,
        Path(job.folder),
        facts={"job": to_plain(job), "model": asdict(model.config)},
        evaluate=lambda _: evaluate_loss(loss, held_out),
    )
    if resume:
        loop.resume()
    loop.run(job.stop_at or None)

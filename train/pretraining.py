"""What the jobs that learn from drawn tasks share; they differ in their loss and in which parameters are trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import nn

from l2m_core.errors import ConfigError
from l2m_core.learn.held_out import SHAPES, HeldOut, draw_held_out
from l2m_core.learn.job_memory import check_memory
from l2m_core.learn.loop import RESUME, Loop, LoopConfig
from l2m_core.learn.stages import Episode, EpisodeStream, Stage
from l2m_core.model.interface import ModelConfig
from l2m_core.settings import to_plain
from train.priors import PriorChoice, priors_of


@dataclass(frozen=True)
class DrawnTasks:
    """Settings of every job that learns from drawn tasks."""

    folder: str
    """Where checkpoints and logs are written."""
    stages: tuple[Stage, ...]
    """Stages of the training, one after the other, each with its own shapes of tasks."""
    prior: PriorChoice = field(default_factory=PriorChoice)
    """Where tasks are drawn from."""
    classes_by_frequency: bool = False
    """Whether classes are coded from the most to the least frequent in a task's context. The release must tell of them so too:
    `inference: {class_order: frequency}`."""
    loop: LoopConfig = field(default_factory=LoopConfig)
    """How to train."""
    held_out: tuple[str, ...] = ()
    """Shapes of held-out tasks: small, middle, wide, long, continuous, or own (as in the last stage). Default: the first
    five for cells, own for rows, as far as the prior has them."""
    held_out_pools: int = 4
    """Batches of held-out tasks of each shape."""
    seed: int = 0
    """Everything random follows from it and the step."""
    device: str = "cpu"
    """"cpu"; with a GPU "cuda", "cuda:1", or "auto", which takes one that has room. Where it is not set: as L2M_DEVICE says."""
    stop_at: int = 0
    """When positive, stop after so many steps in all (the schedule stays that of the stages)."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("stages is empty; give at least one stage, with its steps.")
        if self.held_out_pools < 1:
            raise ConfigError(f"held_out_pools is {self.held_out_pools}; it must be at least 1.")
        if self.stop_at < 0:
            raise ConfigError(f"stop_at is {self.stop_at}; it must be a number of steps, or 0 to go on to the end.")
        # Before anything is loaded: where the model comes from `init`, one of the default size stands for it.
        model = ModelConfig() if getattr(self, "init", "") else getattr(self, "model", ModelConfig())
        check_memory(self.stages, model, self.device, getattr(self, "orders", 1), self.held_out_pools)


def pretrain(
    job: DrawnTasks,
    model: nn.Module,
    loss: nn.Module,
    evaluate: Callable[[nn.Module, tuple[HeldOut, ...]], dict[str, float]],
    resume: bool,
    rate_of: Callable[[str], float] | None = None,
    how_to_go_on: str = RESUME,
) -> dict[str, float]:
    """Runs the job's loop to its end. Prints and returns the last evaluation on held-out tasks."""
    priors = priors_of(job.prior)
    shapes = held_out_shapes(job, model.config.encoder)  # type: ignore[union-attr, arg-type]
    held_out = draw_held_out(priors, job.device, job.held_out_pools, shapes, job.classes_by_frequency)
    most: int = model.config.max_classes  # type: ignore[union-attr, assignment]
    for episode in (episode for group in held_out for episode in group.episodes):
        refuse_more_classes(episode, most)
    stream = stream_of(job, priors)
    loop = Loop(
        loss,
        lambda step: refuse_more_classes(stream.episode(step), most),
        job.stages,
        job.loop,
        Path(job.folder),
        facts={"job": to_plain(job), "model": asdict(model.config)},  # type: ignore[call-overload]
        evaluate=lambda model: evaluate(model, held_out),
        rate_of=rate_of,
        how_to_go_on=how_to_go_on,
    )
    if resume:
        loop.resume()
    loop.run(job.stop_at or None)
    if loop.rank == 0:
        print(loop.summary())
    return loop.held_out


def refuse_more_classes(episode: Episode, most: int) -> Episode:
    """The episode, whose tasks must not have more classes than the model has."""
    n_classes = episode.tasks.n_classes
    if n_classes is not None and (drawn := int(n_classes.max())) > most:
        raise ConfigError(
            f"The prior draws tasks of {drawn} classes, and the model has model.max_classes: {most}. Train a model of as many "
            "as the prior draws, or let the prior draw fewer (prior.settings.max_classes, where it has that setting)."
        )
    return episode


def stream_of(job: DrawnTasks, priors: dict) -> EpisodeStream:
    return EpisodeStream(priors, job.stages, job.seed, job.device, by_frequency=job.classes_by_frequency)


def prepare(job: DrawnTasks) -> None:
    """Threads and the seed of fresh weights, before the model is made."""
    torch.set_num_threads(job.loop.threads)
    torch.manual_seed(job.seed)


def held_out_shapes(job: DrawnTasks, encoder: str) -> dict[str, Stage]:
    """Those that the job names; a rows model reads no wider tasks than its own."""
    names = job.held_out or (("own",) if encoder == "rows" else tuple(SHAPES))
    own = job.stages[-1]
    known = {**SHAPES, "own": own}
    for name in names:
        if name not in known:
            raise ConfigError(f"held_out names {name!r}; known shapes are {', '.join(known)}.")
    return {name: known[name] for name in names}

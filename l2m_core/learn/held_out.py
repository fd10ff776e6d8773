"""Held-out synthetic tasks: models are chosen by these alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from l2m_core.learn.losses import INFORMATION, GainLoss, context_of, query_losses, share_of, soft_crps
from l2m_core.learn.stages import POOL_STEPS, Episode, EpisodeStream, Stage
from l2m_core.model.interface import Memory
from l2m_core.tasks.batch import TaskBatch

SEED = 20_260_101  # never used for training


@dataclass(frozen=True)
class HeldOut:
    """A fixed set of episodes of one shape and kind."""

    name: str
    episodes: tuple[Episode, ...]

    @property
    def n_tasks(self) -> int:
        return sum(len(episode.tasks.x) for episode in self.episodes)


# Small, middle, wide and long tasks with classes, and middle ones with a continuous outcome.
SHAPES = {
    "small": Stage(steps=1, cells=60_000, rows=(160,), features=(5,), context=(0.5,), continuous=0.0),
    "middle": Stage(steps=1, cells=60_000, rows=(256,), features=(14,), context=(0.5,), continuous=0.0),
    "wide": Stage(steps=1, cells=60_000, rows=(256,), features=(32,), context=(0.5,), continuous=0.0),
    "long": Stage(steps=1, cells=60_000, rows=(600,), features=(14,), context=(0.75,), continuous=0.0),
    "continuous": Stage(steps=1, cells=60_000, rows=(256,), features=(14,), context=(0.5,), continuous=1.0),
}


def draw_held_out(
    priors: dict,
    device: torch.device | str = "cpu",
    pools: int = 4,
    shapes: dict[str, Stage] | None = None,
    by_frequency: bool = False,
) -> tuple[HeldOut, ...]:
    """`pools` batches of each shape; shapes of a kind of outcome that no prior has are left out.

    by_frequency: as of EpisodeStream.
    """
    sets = []
    for index, (name, stage) in enumerate((SHAPES if shapes is None else shapes).items()):
        wanted = {0.0: "classes", 1.0: "continuous"}.get(stage.continuous)
        if name in SHAPES and wanted not in priors:
            continue
        stream = EpisodeStream(priors, (stage,), SEED + index, device, ahead=False, by_frequency=by_frequency)
        sets.append(HeldOut(name, tuple(stream.episode(POOL_STEPS * pool) for pool in range(pools))))
    return tuple(sets)


def evaluate(model: nn.Module, held_out: tuple[HeldOut, ...]) -> dict[str, float]:
    """Mean log loss and the base rate's, in nats, of each set."""
    report: dict[str, float] = {}
    for group in held_out:
        losses = losses_of(model, group)
        report[group.name] = float(losses.model.mean())
        report[f"{group.name}_base"] = float(losses.base_rate.mean())
    return report


@dataclass(frozen=True)
class TaskLosses:
    """Of each task of a set, in its order: log losses in nats, and how many classes it has (0: continuous)."""

    model: Tensor
    base_rate: Tensor
    classes: Tensor
    least: Tensor
    """What the truth's own probabilities expect of themselves; NaN where there are none."""


@torch.no_grad()
def losses_of(model: nn.Module, group: HeldOut, expected: bool = False) -> TaskLosses:
    """expected: the model's losses are those that the truth expects, not of the outcomes drawn (soft_log_loss)."""
    loss, base, classes, least = [], [], [], []
    for episode in group.episodes:
        tasks = episode.tasks
        losses, memory = query_losses(model, episode, expected=expected)
        loss.append(losses.mean(1))
        base.append(base_rate_loss(tasks, episode.context, memory))
        count = tasks.n_classes
        classes.append(torch.zeros(len(tasks.x), dtype=torch.int64) if count is None else count.cpu())
        least.append(_least_loss(tasks, episode.context))
    return TaskLosses(torch.cat(loss), torch.cat(base), torch.cat(classes), torch.cat(least))


def _least_loss(tasks: TaskBatch, context: int) -> Tensor:
    """(B,) mean entropy of the truth's probabilities of the queries after `context`."""
    p = None if tasks.truth is None else tasks.truth.probabilities
    if p is None:
        return torch.full((len(tasks.x),), math.nan)
    return torch.special.entr(p[:, context:]).sum(-1).mean(1).cpu()


@torch.no_grad()
def crps_of(model: nn.Module, group: HeldOut) -> Tensor:
    """Mean CRPS, in standard deviations of the context's outcome, of each task with a continuous outcome, in order."""
    scores = []
    for episode in group.episodes:
        tasks, n = episode.tasks, episode.context
        memory = model.condition(context_of(tasks, n), rank=False)  # type: ignore[operator]
        output = model.query(memory, tasks.x[:, n:], episode.a, rank=False)  # type: ignore[operator]
        scores.append(soft_crps(output, memory, tasks, n).mean(1))
    return torch.cat(scores)


REVEALS = 1  # tests of each query whose gains are computed


@torch.no_grad()
def gain_errors_of(model: nn.Module, group: HeldOut) -> Tensor:
    """Mean squared error, on a log scale, of the gain head against gains from the model's own answers: of each task, in order."""
    loss = GainLoss(model, INFORMATION, REVEALS)
    errors = []
    for episode in group.episodes:
        count = len(episode.tasks.x)
        # One task at a time: the loss is a mean over tasks.
        errors += [loss(share_of(episode, task, count))[0] for task in range(count)]
    return torch.stack(errors)


@torch.no_grad()
def evaluate_loss(loss_module: nn.Module, held_out: tuple[HeldOut, ...]) -> dict[str, float]:
    """What a loss reports on each set, averaged over its episodes."""
    report: dict[str, float] = {}
    for group in held_out:
        reports = [loss_module(episode)[1] for episode in group.episodes]
        for name in reports[0]:
            report[f"{group.name}_{name}"] = sum(float(each[name]) for each in reports) / len(reports)
    return report


def base_rate_loss(tasks: TaskBatch, context: int, memory: Memory) -> Tensor:
    """(B,) log loss of the context's class frequencies (one pseudo-count), or of a normal fitted to its outcomes."""
    y, later = tasks.y[:, :context], tasks.y[:, context:]
    if tasks.n_classes is None:
        mean, std = y.float().mean(1, keepdim=True), y.float().std(1, keepdim=True, correction=0).clamp_min(1e-6)
        # Normal log density, ½ log 2π = 0.9189…, of the outcome in units of the context's spread, as the model's loss
        # is.
        z = (later.float() - mean) / std
        return (0.5 * z.square() + 0.918938533 + (std / memory.outcome_scale).log()).mean(1)
    count = torch.nn.functional.one_hot(y, int(tasks.n_classes.max())).sum(1)  # (B, K)
    exists = torch.arange(count.shape[1], device=y.device) < tasks.n_classes[:, None]
    # One pseudo-count spread over the task's classes: a class unseen in the context is unlikely, not impossible.
    p = (count + exists / tasks.n_classes[:, None]) / (context + 1.0)
    return -p.clamp_min(1e-9).log().gather(1, later).mean(1)

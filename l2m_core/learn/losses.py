"""Losses on exercises. Each is a module, so that its parameters can be swapped for bf16 copies in one call."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from l2m_core.learn.stages import Exercise
from l2m_core.model.density import Density
from l2m_core.model.interface import Context, Memory, Output
from l2m_core.tasks.batch import TaskBatch


def context_of(tasks: TaskBatch, rows: int) -> Context:
    """The first `rows` rows of each task, as a model reads them."""
    return Context(tasks.x[:, :rows], tasks.r[:, :rows], tasks.y[:, :rows], tasks.n_classes, tasks.categorical)


def log_loss(output: Output, memory: Memory, y: Tensor) -> Tensor:
    """(B, n) negative log likelihood; of the standardised outcome where it is continuous, so tasks weigh alike."""
    if memory.n_classes is None:
        density = Density(output.prediction, memory.outcome_shift, memory.outcome_scale)
        return -(density.log_prob(y) + memory.outcome_scale.log())
    logits = output.prediction.flatten(0, 1)
    return F.cross_entropy(logits, y.flatten(), reduction="none").view(y.shape)


class PredictorLoss(nn.Module):
    """Algorithm 1 of the study for the cells encoder: log loss of queries known in part, in random order."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, exercise: Exercise) -> tuple[Tensor, dict[str, Tensor]]:
        tasks, n = exercise.tasks, exercise.context
        memory = self.model.condition(context_of(tasks, n))
        output = self.model.query(memory, tasks.x[:, n:], exercise.a)
        loss = log_loss(output, memory, tasks.y[:, n:])
        return loss.mean(), {"loss": loss.detach().mean()}


class GainLoss(nn.Module):
    """Teaches the gain head on a trained predictor: measure one more feature, and see what it told.

    For each query, `reveals` recorded but unknown features are measured in turn against the same memory. Two targets
    have the conditional mutual information as their mean when the predictor is calibrated: the realised drop in log
    loss ("realised": honest about miscalibration, very noisy), and the divergence of the new belief from the old one
    ("expected": the same drop averaged over the outcome, far less noisy). "mixed" halves the difference.
    """

    def __init__(self, model: nn.Module, target: str = "expected", reveals: int = 2):
        super().__init__()
        self.model, self.target, self.reveals = model, target, reveals

    def forward(self, exercise: Exercise) -> tuple[Tensor, dict[str, Tensor]]:
        tasks, n = exercise.tasks, exercise.context
        x, y, r, a = tasks.x[:, n:], tasks.y[:, n:], tasks.r[:, n:], exercise.a
        with torch.no_grad():
            memory = self.model.condition(context_of(tasks, n))
        output = self.model.query(memory, x, a)
        before = log_loss(output, memory, y).detach()
        choices = random_unknown(r & ~a, self.reveals, exercise)
        guesses, targets, drops, weights = [], [], [], []
        for j in choices.unbind(-1):
            index = j.clamp_min(0)[..., None]
            with torch.no_grad():
                after = self.model.query(memory, x, a | F.one_hot(index[..., 0], a.shape[-1]).bool())
                realised = before - log_loss(after, memory, y)
                expected = divergence(after.prediction, output.prediction)
            target = {"realised": realised, "expected": expected, "mixed": (realised + expected) / 2}[self.target]
            guesses.append(output.gain.gather(-1, index)[..., 0])
            targets.append(target.clamp(-3.0, 3.0))
            drops.append(realised)
            weights.append((j >= 0).float())
        gain, target, drop, weight = map(torch.stack, (guesses, targets, drops, weights))
        # A slot with nothing left to measure counts as an error of 0, so that the mean over tasks is a plain one.
        loss = ((gain - target).square() * weight).mean()
        return loss, {"loss": loss.detach(), **_compare(gain.detach(), target, drop, weight)}


def _compare(gain: Tensor, target: Tensor, drop: Tensor, weight: Tensor) -> dict[str, Tensor]:
    """Means over real reveals, and the share of the target's variance within them that the head explains."""
    count = weight.sum().clamp_min(1)
    middle = (target * weight).sum() / count
    spread = ((target - middle).square() * weight).sum().clamp_min(1e-6)
    return {
        "gain": (gain * weight).sum() / count,
        "target": middle,
        "realised": (drop * weight).sum() / count,
        "explained": 1 - ((gain - target).square() * weight).sum() / spread,
    }


def random_unknown(unknown: Tensor, count: int, exercise: Exercise) -> Tensor:
    """(B, n, count) indices of different unknown features, -1 where a query has fewer."""
    key = exercise.uniform(*unknown.shape[1:]) * unknown
    best = key.topk(min(count, unknown.shape[-1]), dim=-1)
    return torch.where(best.values > 0, best.indices, -1)


def divergence(after: Tensor, before: Tensor) -> Tensor:
    """(B, n) KL(after ‖ before) of logits over classes or bins, in nats."""
    p, log_p, log_q = after.softmax(-1), after.log_softmax(-1), before.log_softmax(-1)
    difference = torch.where(p > 0, log_p - log_q, torch.zeros_like(p))
    return (p * difference).sum(-1).detach()


def share_of(exercise: Exercise, rank: int, world: int) -> Exercise:
    """The tasks that one of several processes works on."""
    if world == 1:
        return exercise
    part = slice(rank, None, world)
    tasks, share = exercise.tasks.map(lambda t: t[part]), (rank, world, len(exercise.a))
    return replace(exercise, tasks=tasks, a=exercise.a[part], share=share)

"""From scores to outcomes: classes at a drawn temperature and prevalence, or a signal with noise; and the truth of each.

Scores have unit variance. How many classes there are, how much scores tell and how rare an outcome is, all that is drawn here.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from l2m_core.tasks.batch import Truth
from l2m_core.tasks.draws import coin, integers, log_uniform, normal, standardise, uniform


@dataclass(frozen=True)
class OutcomeRanges:
    """Ranges of what outcomes are drawn of scores."""

    outcome: str = "classes"
    """"classes" or "continuous"."""
    max_classes: int = 10
    """Most classes of a task; 2 makes every task binary."""
    binary_share: float = 0.75
    """Share of binary tasks among those with classes."""
    temperature: tuple[float, float] = (1.0, 14.0)
    """Range of the factor on scores of unit variance, log-uniform: an inverse temperature, so high means predictable."""
    noiseless_share: float = 0.12
    """Share of tasks whose outcome is all but determined by the scores."""
    rare_share: float = 0.35
    """Share of binary tasks with a rare outcome, log-uniform in `rare_prevalence`."""
    rare_prevalence: tuple[float, float] = (0.01, 0.2)
    """Range of a rare outcome's prevalence, log-uniform."""
    noise: tuple[float, float] = (0.05, 2.0)
    """Range of the noise of a continuous outcome, against a signal of unit variance."""
    recorded_share: float = 0.0
    """Share of tasks whose continuous outcome has the shape of a score, a count or a stay: skewed either way, bounded, capped,
    rounded."""


def draw_class_counts(generator, ranges: OutcomeRanges, tasks: int) -> Tensor:
    # Few classes are common; ten of them are beyond what a hundred rows can teach, so they are rare.
    several = log_uniform(generator, (tasks,), 3.0, max(3, ranges.max_classes) + 0.999).long()
    binary = coin(generator, (tasks,), ranges.binary_share) | (ranges.max_classes == 2)
    return torch.where(binary, 2, several)


def classes_of(generator, ranges: OutcomeRanges, scores: Tensor, n_classes: Tensor):
    """Outcomes from scores: scaled by the inverse temperature, shifted to a drawn prevalence, then a categorical draw."""
    tasks, rows, width = scores.shape
    exists = torch.arange(width, device=scores.device) < n_classes[:, None]  # (B, K)
    graded = coin(generator, (tasks, 1, 1), 0.3) & (n_classes > 2)[:, None, None]
    grade = torch.linspace(-1.5, 1.5, width, device=scores.device) if width > 1 else scores.new_zeros(1)
    # Ordered classes: -(s - g)² up to a shared term, for grades g along one score.
    scores = torch.where(graded, scores[..., :1] * grade * 2 - grade.square(), scores)
    sharp = log_uniform(generator, (tasks, 1, 1), *ranges.temperature)
    sharp = torch.where(coin(generator, (tasks, 1, 1), ranges.noiseless_share), 40.0, sharp)
    logits = (scores * sharp).masked_fill(~exists[:, None], float("-inf"))
    target = _draw_prevalence(generator, ranges, exists, n_classes)
    logits = _match_prevalence(logits, target, exists)
    # Which class is which says nothing.
    order = torch.rand(tasks, width, generator=generator, device=scores.device)
    # Classes that a task lacks sort to the end, so codes 0 … K - 1 stay in use.
    order = order.masked_fill(~exists, 2.0).argsort(1)
    logits = logits.gather(2, order[:, None].expand(-1, rows, -1))
    p = logits.softmax(-1)
    y = torch.multinomial(p.flatten(0, 1), 1, generator=generator).view(tasks, rows)
    return y, Truth(probabilities=p), _explained(p)


def _draw_prevalence(generator, ranges: OutcomeRanges, exists: Tensor, n_classes: Tensor) -> Tensor:
    tasks, width = exists.shape
    weight = torch.where(exists, -uniform(generator, exists.shape, 1e-4, 0.999).log(), 0.0).clamp_min(0)
    weight = weight ** uniform(generator, (tasks, 1), 0.2, 1.2) * exists + 0.02 * exists
    rare = log_uniform(generator, (tasks,), *ranges.rare_prevalence)
    common = uniform(generator, (tasks,), 0.1, 0.9)
    # Rare outcomes are common in medicine: a share of the tasks has one for certain.
    positive = torch.where(coin(generator, (tasks,), ranges.rare_share), rare, common)
    pair = torch.zeros_like(weight)
    pair[:, 0], pair[:, 1] = 1 - positive, positive
    weight = torch.where((n_classes == 2)[:, None], pair, weight)
    return weight / weight.sum(1, keepdim=True)


def _match_prevalence(logits: Tensor, target: Tensor, exists: Tensor) -> Tensor:
    """Shifts each class's logit until mean p(y = k) is the target: a damped fixed point is close enough."""
    shift = torch.zeros_like(target)
    spread = logits.masked_fill(~exists[:, None], 0.0).std(1).clamp_min(1.0)  # sharp tasks need longer strides
    for _ in range(24):
        p = (logits + shift[:, None]).softmax(-1).mean(1)
        # The fixed point: shift each class by log(target / mean p), cut to 1 a round and damped.
        step = (target.clamp_min(1e-6).log() - p.clamp_min(1e-6).log()).clamp(-1.0, 1.0)
        shift = torch.where(exists, shift + 0.7 * spread.sqrt() * step, shift)
    return logits + shift[:, None]


def _explained(p: Tensor) -> Tensor:
    """(B,) share of the outcome's entropy that the mechanism's inputs explain."""
    marginal = p.mean(1)
    # (H(Y) - H(Y | inputs)) / H(Y), the share of the entropy that knowing everything would remove.
    total = -(marginal * marginal.clamp_min(1e-9).log()).sum(-1)
    left = -(p * p.clamp_min(1e-9).log()).sum(-1).mean(1)
    return 1 - left / total.clamp_min(1e-6)


def continuous_of(generator, ranges: OutcomeRanges, score: Tensor):
    """A continuous outcome: signal plus noise, some of it skewed, some with noise that grows."""
    tasks, _ = score.shape
    noise = log_uniform(generator, (tasks, 1), *ranges.noise)
    grows = coin(generator, (tasks, 1), 0.2)
    # Heteroscedastic noise in a fifth of the tasks: it grows with the score.
    std = noise * torch.where(grows, (0.7 * score).clamp(-2, 2).exp(), torch.ones_like(score))
    error = normal(generator, score.shape)
    heavy = coin(generator, (tasks, 1), 0.15)
    # Dividing by the root of a uniform draw gives heavy tails.
    error = torch.where(heavy, error / uniform(generator, score.shape, 0.15, 1.0).sqrt(), error)
    y = score + std * error
    skewed = coin(generator, (tasks, 1), 0.25)
    bent = (y * log_uniform(generator, (tasks, 1), 0.2, 0.8)).clamp(-6, 6).exp()
    # No closed form where the outcome is bent or the noise is not normal: the truth says so by NaN.
    mean, spread = score.masked_fill(skewed, float("nan")), std.masked_fill(skewed | heavy, float("nan"))
    scale = log_uniform(generator, (tasks, 1), 0.1, 100.0)
    shift = normal(generator, (tasks, 1)) * scale
    shown = torch.where(skewed, bent, y)
    if ranges.recorded_share > 0:
        recorded = coin(generator, (tasks, 1), ranges.recorded_share)
        shown = torch.where(recorded, _as_recorded(generator, y), shown)
        mean, spread = mean.masked_fill(recorded, float("nan")), spread.masked_fill(recorded, float("nan"))
    y = shift + scale * shown
    truth = Truth(mean=shift + scale * mean, std=scale * spread)
    return y, truth, 1 / (1 + noise[:, 0].square())


def _as_recorded(generator, y: Tensor) -> Tensor:
    """(B, N) an outcome as it is written down: a shape either way up, at times cut off at one end, at times in steps."""
    shape = (y.shape[0], 1)
    z = standardise(y).clamp(-4.0, 4.0) * torch.where(coin(generator, shape, 0.5), 1.0, -1.0)
    power = log_uniform(generator, shape, 0.2, 1.2)
    kind = integers(generator, shape, 0, 3)
    shown = z
    for index, candidate in enumerate(
        ((z * power).exp(), torch.special.ndtr(1.7 * z), z.sign() * torch.expm1(z.abs() * power))
    ):
        shown = torch.where(kind == index + 1, standardise(candidate), shown)
    # Scores that many patients have in full, counts of which many are zero, stays that a study ended.
    least = (uniform(generator, shape, 0.02, 0.4) * y.shape[1]).long()
    limit = shown.sort(1).values.gather(1, least)
    shown = torch.where(coin(generator, shape, 0.3), torch.maximum(shown, limit), shown)
    shown = shown * torch.where(coin(generator, shape, 0.5), 1.0, -1.0)
    step = log_uniform(generator, shape, 0.05, 1.0)
    stepped = (shown / step).round() * step
    # An outcome that nearly all patients share would have no spread in a short context.
    shared = (stepped == stepped.median(1, keepdim=True).values).float().mean(1, keepdim=True)
    return torch.where(coin(generator, shape, 0.5) & (shared < 0.7), stepped, shown)

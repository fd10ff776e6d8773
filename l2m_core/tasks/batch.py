"""TaskBatch: what every prior returns. B tasks of one shape, on one device."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Truth:
    """What the prior knows and a real cohort never tells; None where it has no closed form.

    probabilities: (B, N, K) p(y | what the label mechanism saw); mean, std: (B, N) for continuous outcomes;
    informative: (B, N, d) bool, the features that the label mechanism reads for that row.
    """

    probabilities: Tensor | None = None
    mean: Tensor | None = None
    std: Tensor | None = None
    informative: Tensor | None = None


@dataclass(frozen=True)
class TaskBatch:
    """B tasks with N rows and d features each.

    x: (B, N, d) float32, complete values; r: (B, N, d) bool, True where recorded;
    y: (B, N) int64 class codes, or float32 when `n_classes` is None;
    n_classes: (B,) int64, classes of each task, or None for continuous outcomes;
    acquirable: (B, d) bool, False for baseline features; categorical: (B, d) bool.
    """

    x: Tensor
    r: Tensor
    y: Tensor
    n_classes: Tensor | None
    acquirable: Tensor
    categorical: Tensor
    truth: Truth | None = None

    @property
    def continuous(self) -> bool:
        return self.n_classes is None

    def map(self, function) -> TaskBatch:
        """The batch with `function` applied to every tensor (the truth's included)."""
        return _map(self, function)

    def to(self, device: torch.device | str) -> TaskBatch:
        return self.map(lambda tensor: tensor.to(device))

    def select(self, index: Tensor) -> TaskBatch:
        """The tasks that `index` (integers or a mask over B) picks."""
        return self.map(lambda tensor: tensor[index])


def coded_by_frequency(tasks: TaskBatch, rows: int) -> TaskBatch:
    """The same tasks with codes that tell how frequent a class is among the first `rows`: 0 the most frequent.

    For models that are told of classes so (`AnswerSettings.class_order`): of all codings they need learn one only.
    """
    if tasks.n_classes is None:
        return tasks
    truth, p = tasks.truth, None if tasks.truth is None else tasks.truth.probabilities
    width = int(tasks.n_classes.max()) if p is None else p.shape[-1]
    count = nn.functional.one_hot(tasks.y[:, :rows], width).sum(1)  # (B, K)
    # Classes that a task lacks stay behind those that it has.
    count = count.masked_fill(torch.arange(width, device=count.device) >= tasks.n_classes[:, None], -1)
    class_at = count.argsort(dim=1, descending=True, stable=True)  # (B, K): the class that gets each code
    y = class_at.argsort(1).gather(1, tasks.y)
    if truth is not None and p is not None:
        truth = replace(truth, probabilities=p.gather(2, class_at[:, None].expand_as(p)))
    return replace(tasks, y=y, truth=truth)


def _map(record, function):
    changed = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, Tensor):
            changed[field.name] = function(value)
        elif isinstance(value, Truth):
            changed[field.name] = _map(value, function)
    return replace(record, **changed)

"""TaskBatch: what every prior returns. B tasks of one shape, on one device."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Truth:
    """What the prior knows and a real cohort never tells; None where it has no closed form.

    probabilities: (B, N, K) p(y | what the label mechanism saw); mean, std: (B, N) for continuous outcomes;
    informative: (B, N, d) bool, the features that the label mechanism reads for that row;
    draws: (B, N, S) of a continuous outcome, as the context tells of it, NaN of the context's own rows;
    form: what such answers are computed from once the context is known, see l2m_core/tasks/best_answers.py.
    """

    probabilities: Tensor | None = None
    mean: Tensor | None = None
    std: Tensor | None = None
    informative: Tensor | None = None
    draws: Tensor | None = None
    form: Any = None


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


def _map(record, function):
    changed = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, Tensor):
            changed[field.name] = function(value)
        elif is_dataclass(value):
            changed[field.name] = _map(value, function)
    return replace(record, **changed)

"""Complete rows become tasks as a cohort records them: some features are known from the start, and cells are missing."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.missingness import sample_missingness
from l2m_core.tasks.roles import sample_acquirable


def as_recorded(
    generator: torch.Generator, config: Any, x: Tensor, y: Tensor, n_classes: Tensor | None, truth: Truth
) -> TaskBatch:
    """The tasks of x (B, N, d) and y (B, N), with the baseline features and the holes that the config asks for."""
    acquirable = sample_acquirable(generator, len(x), x.shape[-1], config.baseline)
    return TaskBatch(
        x=x,
        r=sample_missingness(generator, x, acquirable, config.missingness, y),
        y=y,
        n_classes=n_classes,
        acquirable=acquirable,
        categorical=torch.zeros_like(acquirable),
        truth=truth,
    )

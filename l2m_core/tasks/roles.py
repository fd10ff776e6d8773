"""Which features of a task are known from the start, and which tell about the outcome."""

from __future__ import annotations

import torch
from torch import Tensor

from l2m_core.tasks.draws import integers, subset


def sample_acquirable(generator: torch.Generator, tasks: int, features: int, baseline: tuple[int, int]) -> Tensor:
    """(B, d) bool: False for the baseline features, a random count in `baseline` at random positions.

    At least one feature stays acquirable.
    """
    count = integers(generator, (tasks,), *baseline).clamp_max(features - 1)
    return ~subset(generator, count, features)


def sample_informative(
    generator: torch.Generator, shape: tuple[int, ...], features: int, count: tuple[int, int]
) -> Tensor:
    """(*shape, d) bool: a random count in `count`, at most all features, at random positions."""
    return subset(generator, integers(generator, shape, *count).clamp_max(features), features)

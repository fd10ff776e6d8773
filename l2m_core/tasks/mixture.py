"""A prior made of priors: every task of a batch, or every batch, comes from one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import torch
from torch import Tensor

from l2m_core.errors import ConfigError
from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.checks import check_choice, check_number
from l2m_core.tasks.draws import choice


class Prior(Protocol):
    """A distribution over tasks."""

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch: ...


@dataclass(frozen=True)
class Part:
    """One prior of a mixture."""

    prior: str
    """Name of the prior in the registry."""
    weight: float = 1.0
    """Its share; weights need not sum to one."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of its config."""

    def __post_init__(self) -> None:
        check_number(self, "weight", 0.0, 1e9)


@dataclass(frozen=True)
class MixtureConfig:
    """Priors and their shares."""

    parts: tuple[Part, ...]
    """The priors, with weights and settings."""
    by: str = "task"
    """"task": the tasks of a batch come from several priors (all with classes, or all continuous);
    "batch": each batch comes from one."""

    def __post_init__(self) -> None:
        check_choice(self, "by", ("task", "batch"))
        if sum(part.weight for part in self.parts) <= 0:
            raise ConfigError("MixtureConfig.parts needs at least one part with a weight above 0.")


class MixturePrior:
    """priors: in the order of config.parts."""

    def __init__(self, config: MixtureConfig, *, priors: Sequence[Prior]):
        if len(priors) != len(config.parts):
            raise ConfigError(f"The mixture has {len(config.parts)} parts and {len(priors)} priors; give one for each.")
        self.config = config
        self.priors = tuple(priors)
        self._weights = tuple(float(part.weight) for part in config.parts)

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        if self.config.by == "batch":
            picked = int(choice(generator, 1, self._weights))
            return self.priors[picked].sample(generator, tasks, rows, features)
        # (B,) the part that each task comes from; each part then draws all of its tasks in one call.
        source = choice(generator, tasks, self._weights)
        counts = torch.bincount(source, minlength=len(self.priors)).tolist()
        batches = [
            prior.sample(generator, count, rows, features)
            for prior, count in zip(self.priors, counts, strict=True)
            if count > 0
        ]
        # The batches follow one another by prior; each task moves to the index that drew its prior.
        return concatenate(batches).select(source.argsort(stable=True).argsort())


def concatenate(batches: Sequence[TaskBatch]) -> TaskBatch:
    """One batch of all tasks. What some truths lack becomes NaN, and no feature is called informative there."""
    if len({batch.continuous for batch in batches}) > 1:
        raise ConfigError("Tasks with classes and continuous ones cannot share a batch; set the mixture's `by: batch`.")
    joined: dict[str, Any] = {}
    for name in ("x", "r", "y", "n_classes", "acquirable", "categorical"):
        values = [getattr(batch, name) for batch in batches]
        joined[name] = None if values[0] is None else torch.cat(values)
    return TaskBatch(**joined, truth=_concatenate_truths(batches))


def _concatenate_truths(batches: Sequence[TaskBatch]) -> Truth | None:
    truths = [batch.truth or Truth() for batch in batches]
    joined: dict[str, Tensor | None] = {}
    for truth_field in fields(Truth):
        if truth_field.name == "form":
            continue  # of all tasks of a batch, or of none: `by: batch`
        values = [getattr(truth, truth_field.name) for truth in truths]
        # Any part that has this truth gives its type; if none has it, there is none.
        known = next((value for value in values if value is not None), None)
        if known is None:
            joined[truth_field.name] = None
            continue
        tails = [value.shape[2:] for value in values if value is not None]
        tail = max(tails)
        blank = False if known.dtype == torch.bool else float("nan")
        parts = []
        for batch, value in zip(batches, values, strict=True):
            if value is None:
                parts.append(known.new_full((*batch.y.shape, *tail), blank))
            elif value.shape[2:] == tail:
                parts.append(value)
            else:
                # Fewer classes than the widest batch: the classes it lacks have probability 0.
                parts.append(torch.nn.functional.pad(value, (0, tail[0] - value.shape[2])))
        joined[truth_field.name] = torch.cat(parts)
    return None if all(value is None for value in joined.values()) else Truth(**joined)

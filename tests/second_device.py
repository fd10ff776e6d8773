"""A second CPU device in the place of a GPU, for machines that have none."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig

FREE = 80 * 2**30
ACCELERATOR_ERROR = getattr(torch, "AcceleratorError", torch.OutOfMemoryError)  # which torch has since 2.8
SECRET = "patient-0471"  # in the words of each failure, which no warning may repeat


def telling_model(config: ModelConfig) -> nn.Module:
    """A small model whose answers depend on what it is told: fresh weights of its heads are 0."""
    generator = torch.Generator().manual_seed(0)
    module = build_model(config)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    return module


class SecondDevice:
    """Answers as the GPUs of a machine do. Whatever it is asked to compute, it computes on the CPU, and counts.

    free: bytes of each GPU; fails_at: the number of the call (from 1) at which it fails and after which it fails again and
    again; places: whether it takes a module at all.
    """

    def __init__(
        self,
        *free: int,
        fails_at: int | None = None,
        failure: type[RuntimeError] = torch.OutOfMemoryError,
        places: bool = True,
    ) -> None:
        self.free, self.fails_at, self.failure, self.places = free or (FREE,), fails_at, failure, places
        self.calls = 0

    def count(self) -> int:
        return len(self.free)

    def title(self, number: int) -> str:
        return "Second Device"

    def free_bytes(self, number: int) -> int:
        return self.free[number]

    def place(self, module: nn.Module, number: int) -> nn.Module:
        if not self.places:
            raise self.failure(SECRET)
        placed = copy.deepcopy(module)
        for name in ("condition", "query"):
            setattr(placed, name, self._counted(getattr(placed, name)))
        return placed

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self.calls += 1
            if self.fails_at is not None and self.calls >= self.fails_at:
                raise self.failure(SECRET)
            return function(*given, **named)

        return call

    def is_failure(self, error: BaseException) -> bool:
        return isinstance(error, torch.OutOfMemoryError | ACCELERATOR_ERROR)

    def wait(self, number: int) -> None:
        pass

    def begin_peak(self, number: int) -> None:
        self.calls_before = self.calls

    def peak_bytes(self, number: int) -> int:
        return 123 * 2**20

"""Arithmetic of a step: which precision, compiled or not, and how many operations it took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

T = TypeVar("T")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def call_lowered(module: nn.Module, dtype: torch.dtype, exercise: Any) -> Any:
    """`module(exercise)` with its parameters as `dtype`; gradients reach the float32 originals."""
    lowered = {name: p.to(dtype) if p.is_floating_point() else p for name, p in module.named_parameters()}
    return functional_call(module, lowered, (exercise,))


class Work:
    """Counts floating-point operations: once for each shape of step, since a shape always costs the same."""

    def __init__(self) -> None:
        self.total, self.seconds = 0, 0.0
        self._by_shape: dict[tuple, int] = {}

    def count(self, shape: tuple, step: Callable[[], T]) -> T:
        """Runs `step` and adds its operations and its time up; a first time is counted, not timed."""
        if shape not in self._by_shape:
            with FlopCounterMode(display=False) as counter:
                result = step()
            self._by_shape[shape] = counter.get_total_flops()
            return result
        began = time.monotonic()
        result = step()
        self.total += self._by_shape[shape]
        self.seconds += time.monotonic() - began
        return result

    def knows(self, shape: tuple) -> bool:
        return shape in self._by_shape

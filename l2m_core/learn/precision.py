"""How a step computes: its precision, and how many floating-point operations it takes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch
from torch import nn
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from l2m_core.errors import ConfigError

# On a CPU each shape's kernels of bfloat16 are built and kept, by default a thousand of them, which are gigabytes. Read
# once, at the first such kernel; whoever has many shapes and much memory may set it higher.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "100")

T = TypeVar("T")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
FASTER = "auto"
CLEARLY = 1.25
"""By how much bfloat16's products must be faster to be chosen: the rest of a step gains less, and the choice should be the same
each time."""
TRIAL = (1024, 128, 512)
"""Rows, width and hidden width of the products that are tried, as a block of the network has them."""
SECONDS_TO_TRY = 0.3


def check_dtype(name: str, dtype: str) -> None:
    if dtype not in (FASTER, *DTYPES):
        raise ConfigError(f"{name} is {dtype!r}; it must be one of {', '.join((FASTER, *DTYPES))}.")


def chosen_dtype(dtype: str, device: torch.device | str, threads: int) -> str:
    """What `dtype` names; of "auto" bfloat16 on a GPU, and on a processor what a trial finds faster."""
    if dtype != FASTER:
        return dtype
    return "bfloat16" if torch.device(device).type != "cpu" or is_bfloat16_faster(threads) else "float32"


@cache
def is_bfloat16_faster(threads: int) -> bool:
    """Tried once, so that all trainings of a process compute alike."""
    return products_a_second("bfloat16", threads) > CLEARLY * products_a_second("float32", threads)


def products_a_second(dtype: str, threads: int) -> float:
    """Floating-point operations a second of plain matrix products on the processor, which no training exceeds."""
    rows, width, hidden = TRIAL
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        left, right = torch.ones(rows, width, dtype=DTYPES[dtype]), torch.ones(width, hidden, dtype=DTYPES[dtype])
        left @ right  # the first product also loads its kernel
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < SECONDS_TO_TRY:
            left @ right
            done += 1
        return 2 * rows * width * hidden * done / (time.perf_counter() - start)
    finally:
        torch.set_num_threads(before)


def call_lowered(module: nn.Module, dtype: torch.dtype, episode: Any) -> Any:
    """`module(episode)` with its parameters as `dtype`; gradients reach the float32 originals."""
    # The cast is part of the graph: its backward brings the gradient to the float32 master weights.
    lowered = {name: p.to(dtype) if p.is_floating_point() else p for name, p in module.named_parameters()}
    return functional_call(module, lowered, (episode,))


BLOCK_PARTS = ("mix_cells", "remember", "read_sharply")


def compile_blocks(model: nn.Module) -> None:
    """Has `torch.compile` build kernels for the parts of every block, once for all blocks and shapes.

    Whole steps would be compiled anew for each shape, which takes longer than a short run lasts.
    """
    # A part is built anew for long and short attention, and for a single task; beyond the limit it would run uncompiled.
    torch._dynamo.config.recompile_limit = max(64, torch._dynamo.config.recompile_limit)
    for block in model.blocks:  # type: ignore[union-attr]
        for part in BLOCK_PARTS:
            if hasattr(block, part):
                setattr(block, part, torch.compile(getattr(block, part), dynamic=True))


class FlopMeter:
    """Floating-point operations and seconds of training steps."""

    def __init__(self) -> None:
        self.total, self.seconds = 0, 0.0
        self._by_shape: dict[tuple, int] = {}

    def count(self, shape: tuple, step: Callable[[], Any]) -> None:
        """Counts a new shape's operations in an extra run of `step`, whose gradients the caller throws away.

        The real step is never counted itself: under the counter, gradients are summed in another order, and a resumed
        job would differ from an unbroken one in the last bit.
        """
        if shape not in self._by_shape:
            # Compiled kernels hide what they compute.
            with torch.compiler.set_stance("force_eager"), FlopCounterMode(display=False) as counter:
                step()
            self._by_shape[shape] = counter.get_total_flops()

    def run(self, shape: tuple, step: Callable[[], T]) -> T:
        """Runs `step`, and adds its operations and its time up."""
        began = time.monotonic()
        result = step()
        self.total += self._by_shape.get(shape, 0)
        self.seconds += time.monotonic() - began
        return result

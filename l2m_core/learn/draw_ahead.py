"""Draws the next pool of episodes while the present one is trained on.

A prior draws its tasks with thousands of small operations, which keep the processor busy and a GPU hardly at all; a step of
training is few large ones. In a thread, and on a GPU in a stream of their own, the small ones fit between the large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

Drawn = TypeVar("Drawn")


class DrawAhead:
    """One draw at a time, under a key. tensors_of: all tensors of what is drawn."""

    def __init__(self, device: torch.device | str, tensors_of: Callable[[Drawn], list[Tensor]]):
        device = torch.device(device)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._tensors_of = tensors_of
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="draw-ahead")
        self._under_way: tuple[Hashable, Future] | None = None

    def start(self, key: Hashable, draw: Callable[[], Drawn]) -> None:
        """Begins a draw, unless it is the one under way."""
        if self._under_way is None or self._under_way[0] != key:
            self._under_way = (key, self._thread.submit(self._draw, draw))

    def take(self, key: Hashable, draw: Callable[[], Drawn]) -> Drawn:
        """What was drawn under the key; drawn now, where another draw was begun or none."""
        self.start(key, draw)
        assert self._under_way is not None
        future, self._under_way = self._under_way[1], None
        drawn, is_ready = future.result()
        if is_ready is not None:
            present = torch.cuda.current_stream(self._stream.device)  # type: ignore[union-attr]
            present.wait_event(is_ready)
            for tensor in self._tensors_of(drawn):
                # Its memory must not be given to the next draw before the steps that read it are over.
                tensor.record_stream(present)
        return drawn

    def _draw(self, draw: Callable[[], Drawn]) -> tuple[Drawn, torch.cuda.Event | None]:
        if self._stream is None:
            return draw(), None
        with torch.cuda.stream(self._stream):
            return draw(), self._stream.record_event()

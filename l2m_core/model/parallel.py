"""Independent calls on two cores, where torch itself was told to use one thread.

The threads of torch wait for each other many times within one call, which is slow as soon as another process wants their
core. Two whole calls wait for each other once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")
RunAll = Callable[[Sequence[Callable[[], Result]]], list[Result]]

_helper = ThreadPoolExecutor(1, thread_name_prefix="l2m-helper")


def in_turn(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """What each call returns, in order."""
    return [call() for call in calls]


def side_by_side(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """The same, on two cores: the helper thread takes the calls that it gets to, the caller makes the rest."""
    if torch.get_num_threads() > 1:
        return in_turn(calls)
    helped = [_helper.submit(call) for call in calls[1:]]
    first = [call() for call in calls[:1]]
    return first + [
        call() if future.cancel() else future.result() for call, future in zip(calls[1:], helped, strict=True)
    ]

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
    # A call that is not begun waits in the helper's queue even after it is cancelled, for as long as the helper is at something
    # else. Of a call that the caller made, an empty list waits, not the tensors that it was about.
    waiting = [[call] for call in calls[1:]]
    helped = [_helper.submit(_take, call) for call in waiting]
    first = [call() for call in calls[:1]]
    return first + [
        _take(call) if future.cancel() else future.result() for call, future in zip(waiting, helped, strict=True)
    ]


def _take(waiting: list[Callable[[], Result]]) -> Result:
    """Makes the one call that waits, and lets go of it."""
    return waiting.pop()()

"""Independent pieces of work on two cores, where torch itself was told to use one.

Threads of torch wait for each other many times in one piece of work, which is slow as soon as somebody else wants their core;
whole pieces wait once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")
Each = Callable[[Sequence[Callable[[], Result]]], list[Result]]

_helper = ThreadPoolExecutor(1, thread_name_prefix="l2m-helper")


def in_turn(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """What each call returns, in order."""
    return [call() for call in calls]


def side_by_side(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """The same; the helper takes what it comes to, the caller does the rest."""
    if torch.get_num_threads() > 1:
        return in_turn(calls)
    helped = [_helper.submit(call) for call in calls[1:]]
    first = [call() for call in calls[:1]]
    return first + [
        call() if future.cancel() else future.result() for call, future in zip(calls[1:], helped, strict=True)
    ]

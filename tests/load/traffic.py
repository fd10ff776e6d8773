"""Many visitors at once, and many one after another: how long presses take, and what the server keeps."""

from __future__ import annotations

import asyncio
import random
import re
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from websockets.exceptions import ConnectionClosed

from tests.load.visitor import Failed, Visitor

MARKS = ("mark-unavailable", "mark-declined", "mark-pending")


@dataclass
class Presses:
    """Seconds from each press to the drawn page, and what went wrong."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.seconds, share)) if self.seconds else float("nan")


async def begin(visitor: Visitor, example: int = 0) -> None:
    """From the first page to a step-through on a bundled cohort."""
    await visitor.press(f"open-example-{example}")
    await visitor.follow("Start a step-through")
    await visitor.press("start-example")
    await visitor.press("start-submit")


async def step(visitor: Visitor, number: int) -> float:
    """One press as people make them: a result, a test that cannot be had, or a step taken back."""
    value = next((key for key in visitor.keys() if key.startswith("value-")), None)
    if number % 5 == 4:
        return await visitor.press("undo")
    if number % 2 == 0 and value is not None and hasattr(visitor.find(value), "format"):
        return await visitor.press("record-submit", **{value: 1.0 + number / 10})
    mark = MARKS[number % 3]
    return await visitor.press(mark if mark in visitor.keys() else "undo")


async def crowd(address: str, users: int, seconds: float, think: float = 1.0) -> Presses:
    """`users` people stepping through at once, measured once all of them have begun."""
    presses, draw = Presses(), random.Random(0)
    async with AsyncExitStack() as stack:
        visitors = []
        for _ in range(users):
            visitor = await stack.enter_async_context(Visitor(address))
            await begin(visitor)
            visitors.append(visitor)
        end = time.perf_counter() + seconds
        await asyncio.gather(*(one_person(v, presses, end, think, draw.uniform(0, think)) for v in visitors))
    return presses


async def one_person(visitor: Visitor, presses: Presses, end: float, think: float, late: float) -> None:
    number = 0
    try:
        await visitor.think(late)
        while number == 0 or time.perf_counter() < end:  # a slow machine presses once as well
            presses.seconds.append(await step(visitor, number))
            number += 1
            await visitor.think(think)
    except (Failed, OSError, TimeoutError, ConnectionClosed) as problem:
        presses.errors.append(f"{type(problem).__name__}: {problem}")


async def come_and_go(address: str, sessions: int, example: int = 0, at_once: int = 4) -> list[str]:
    """Sessions that begin a step-through, make one step and close; the errors met."""
    waiting, errors = asyncio.Semaphore(at_once), []

    async def one() -> None:
        async with waiting:
            try:
                async with Visitor(address) as visitor:
                    await begin(visitor, example)
                    await step(visitor, 1)
            except (Failed, OSError, TimeoutError, ConnectionClosed) as problem:
                errors.append(f"{type(problem).__name__}: {problem}")

    await asyncio.gather(*(one() for _ in range(sessions)))
    return errors


def resident_megabytes(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1000

"""The real app, served by two processes behind one address."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.browser import Served, serving
from tests.load.traffic import begin, step
from tests.load.visitor import Visitor


@pytest.fixture(scope="module")
def served(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(repository, tmp_path_factory.mktemp("data"), processes=2) as found:
        yield found


def workers_of(pid: int) -> list[int]:
    return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_downloads_reach_the_process_that_drew_the_page(served: Served) -> None:
    async def go(number: int) -> tuple[int, int]:
        async with Visitor(served.address) as visitor:
            await begin(visitor)
            await step(visitor, number)
            path = await visitor.ask_for_download("export-json")
            return visitor.get(path), visitor.get("/_stcore/health")

    async def several() -> list[tuple[int, int]]:
        return [await go(number) for number in range(4)]

    assert asyncio.run(several()) == [(200, 200)] * 4
    assert len(workers_of(served.pid)) == 2
    assert not [line for line in served.lines if "Traceback" in line]
    assert not [line for line in served.lines if "GET /" in line], "request lines are in the log"


def test_nothing_is_lost_when_serving_processes_are_killed(served: Served) -> None:
    async def begin_one() -> tuple[str, str, str]:
        async with Visitor(served.address) as visitor:
            await begin(visitor)
            await step(visitor, 1)
            return visitor.query, visitor.cookie, believed(visitor)

    async def look(query: str, cookie: str) -> str:
        async with Visitor(served.address, "step_through", query, cookie) as visitor:
            return believed(visitor)

    query, cookie, before = asyncio.run(begin_one())
    killed = workers_of(served.pid)
    for number in killed:
        os.kill(number, signal.SIGKILL)
    until = time.monotonic() + 120
    while (set(workers_of(served.pid)) & set(killed) or len(workers_of(served.pid)) < 2) and time.monotonic() < until:
        time.sleep(0.1)
    assert asyncio.run(look(query, cookie)) == before
    assert len(workers_of(served.pid)) == 2


def believed(visitor: Visitor) -> str:
    """The probability that the page shows, and which tests are not to be had."""
    shown = [e.metric.body for e in visitor.elements.values() if e.WhichOneof("type") == "metric"]
    return " ".join([*shown, *sorted(key for key in visitor.keys() if key.startswith("status-"))])

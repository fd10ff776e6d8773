"""The server talks to its visitors and its database, and to nobody else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.e2e.browser import serving
from tests.load.traffic import begin, step
from tests.load.visitor import Visitor

# Python imports this at its start, before anything of the app. It names whoever a program tries to reach.
WATCH = """
import sys
import time

def watch(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if host not in (None, "", "localhost", "127.0.0.1", "::1"):
        print("OUTBOUND", event, file=sys.stderr, flush=True)
        time.sleep(1)  # as where outgoing traffic hangs

sys.addaudithook(watch)
"""


@pytest.fixture
def watched(tmp_path: Path) -> str:
    """The search path of a Python that watches itself."""
    folder = tmp_path / "watch"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WATCH)
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


async def use_every_page(address: str) -> None:
    async with Visitor(address) as visitor:
        await begin(visitor)
        await step(visitor, 1)
        await visitor.ask_for_download("export-json")
        cookie, query = visitor.cookie, visitor.query
    for page in ("", "step_through", "traces", "evidence", "experiments", "about"):
        async with Visitor(address, page, query, cookie):
            pass


def test_the_server_reaches_out_to_nobody(repository: Path, tmp_path: Path, watched: str) -> None:
    with serving(repository, tmp_path / "data", PYTHONPATH=watched) as served:
        asyncio.run(use_every_page(served.address))
    assert not [line for line in served.lines if "OUTBOUND" in line]


async def knock(address: str, origin: str) -> int:
    """The status with which a handshake from this origin is answered."""
    try:
        async with connect(address.replace("http", "ws", 1) + "/_stcore/stream", origin=origin):  # type: ignore[arg-type]
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


async def knock_while_others_read(address: str) -> tuple[set[int], float]:
    """How handshakes of other sites are answered, and the longest that a page took meanwhile."""
    origins = ["http://evil.example", "https://evil.example:8501", "http://localhost:3000", "null"] * 3
    knocking = asyncio.gather(*(knock(address, origin) for origin in origins))
    longest = 0.0
    while longest == 0 or not knocking.done():
        began = time.perf_counter()
        assert await asyncio.to_thread(Visitor(address).get, "/about") == 200
        longest = max(longest, time.perf_counter() - began)
    return {*await knocking}, longest


@pytest.mark.parametrize("public", [{}, {"STREAMLIT_BROWSER_SERVER_ADDRESS": "l2m.example.org"}])
def test_other_sites_handshakes_are_refused_reach_nobody_and_hold_up_nobody(
    repository: Path, tmp_path: Path, watched: str, public: dict[str, str]
) -> None:
    with serving(repository, tmp_path / "data", PYTHONPATH=watched, **public) as served:
        assert Visitor(served.address).get("/about") == 200
        statuses, longest = asyncio.run(knock_while_others_read(served.address))
        own = asyncio.run(knock(served.address, served.address))
    assert (statuses, own) == ({403}, 101)
    assert not [line for line in served.lines if "OUTBOUND" in line]
    assert longest < 0.5


@pytest.mark.parametrize(
    "program",
    [
        "import socket; s = socket.socket(); s.setblocking(False); s.connect_ex(('192.0.2.1', 80))",
        "import socket\ntry: socket.getaddrinfo('canary.invalid', 80)\nexcept OSError: pass",
    ],
)
def test_one_that_reaches_out_would_be_noticed(watched: str, program: str) -> None:
    environment = {**os.environ, "PYTHONPATH": watched}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert "OUTBOUND" in ran.stderr

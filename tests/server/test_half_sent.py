"""Requests that never end: each is dropped in time, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from websockets.sync.client import connect

from app.host.identity import COOKIE, load_signer
from app.server import head_limit, limits
from app.server.head_limit import HeadLimit
from app.server.limits import MOST_OF_ONE, WaitingConnections
from tests.e2e.browser import serving
from tests.figures import Keep
from tests.load.visitor import Visitor
from tests.server.half_sent import HALF, few_files, hold
from tests.server.test_several import ask, front, request

SOON = 2.0  # seconds within which others are answered


# -- who makes way ----------------------------------------------------------------------------------------------------


def test_the_oldest_of_an_address_makes_way_and_other_addresses_stay() -> None:
    waiting: WaitingConnections[str] = WaitingConnections(most_of_one=2, most=4)
    assert [waiting.add(name, name[0], 0.0) for name in ("a1", "b1", "a2", "a3", "b2")] == [None] * 3 + ["a1", None]
    assert waiting.add("c1", "c", 1.0) == "b1", "the oldest of all where there are too many in all"
    waiting.discard("a2")
    waiting.discard("a2")
    assert len(waiting) == 3 and "a3" in waiting and "a2" not in waiting
    assert waiting.since_before(0.5) == ["a3", "b2"] and waiting.since_before(1.0) == ["c1"] and len(waiting) == 0


# -- one process ------------------------------------------------------------------------------------------------------


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server that answers everything with 200, and waits two seconds for a head."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})

    monkeypatch.setattr(HeadLimit, "patience", 2.0)
    with served_by(app) as port:
        yield port


@contextmanager
def served_by(app: Any) -> Iterator[int]:
    HeadLimit.waiting = None
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", http=HeadLimit, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield int(server.servers[0].sockets[0].getsockname()[1])
    server.should_exit = True
    thread.join(60)


def get(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_one_process_drops_half_sent_requests_and_answers_others(port: int) -> None:
    held = hold(port, 200, 4, lambda: get(port), seconds=30)
    assert len(held.dropped) == 200 and 1.9 < min(held.dropped) and max(held.dropped) < 2.0 + SOON
    assert max(held.waits) < SOON


def test_one_process_holds_so_many_of_one_address_and_no_more(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough to tell those that make way from those that are waited for, on a machine that stalls for seconds too.
    monkeypatch.setattr(HeadLimit, "patience", 8.0)
    held = hold(port, MOST_OF_ONE + 50, 1, lambda: get(port), seconds=30)
    at_once = [seconds for seconds in held.dropped if seconds < HeadLimit.patience - 0.1]
    assert len(held.dropped) == MOST_OF_ONE + 50 and len(at_once) == 50


def test_a_head_that_trickles_in_after_an_answer_is_waited_for_no_longer(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request())
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        connection.sendall(HALF)
        began = time.monotonic()
        with pytest.raises(OSError, match=r"."):
            while time.monotonic() < began + 20:
                connection.sendall(b"x")
                time.sleep(0.1)
        assert time.monotonic() - began < 2.0 + SOON


def test_a_whole_head_ends_the_wait(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(HALF)
        time.sleep(0.3)
        connection.sendall(b"x\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        assert HeadLimit.waiting is not None and len(HeadLimit.waiting) == 0


# -- bodies -----------------------------------------------------------------------------------------------------------


def put(port: int, size: int) -> socket.socket:
    """A connection on which a request has begun whose body is so long."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(f"PUT / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n".encode())
    return connection


@pytest.mark.parametrize("rate", [0, 50])
def test_a_body_that_rests_or_trickles_is_dropped(reading_port: int, rate: int) -> None:
    with put(reading_port, 10_000_000) as connection:
        connection.sendall(b"x" * 100_000)  # what came fast earns no rest
        began = time.monotonic()
        with pytest.raises(OSError, match=r"."):
            while time.monotonic() < began + 20:
                connection.sendall(b"x" * (rate // 10))
                time.sleep(0.1)
                connection.settimeout(0.001)
                try:
                    if connection.recv(1) == b"":
                        raise ConnectionResetError("dropped")
                except TimeoutError:
                    pass
        assert 1.4 < time.monotonic() - began < 1.5 + 2 * SOON


def test_a_slow_but_steady_body_is_read_to_its_end(reading_port: int) -> None:
    with put(reading_port, 4000) as connection:
        for _ in range(40):  # 1,000 bytes in a second, for longer than a body may rest
            connection.sendall(b"x" * 100)
            time.sleep(0.1)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        connection.sendall(request())
        assert connection.recv(100), "the next request on the same connection is waited for as ever"


def test_a_body_is_not_late_while_the_program_does_not_read_it(reading_port: int) -> None:
    with put(reading_port, 10_000_000) as connection:
        connection.sendall(b"slow" + b"x" * 9_999_996)  # it reads on after four seconds
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


@pytest.fixture
def reading_port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server that reads each body before it answers, and lets one rest for a second and a half."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        size, more, rested = 0, True, False
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if message["body"].startswith(b"slow") and not rested:
                rested = True
                await asyncio.sleep(4)
            size, more = size + len(message["body"]), message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    monkeypatch.setattr(HeadLimit, "body_patience", 1.5)
    with served_by(app) as port:
        yield port


# -- web sockets ------------------------------------------------------------------------------------------------------


def test_a_web_socket_stays_open_longer_than_a_head_or_a_body_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    async def echo(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})

    monkeypatch.setattr(HeadLimit, "patience", 0.5)
    monkeypatch.setattr(HeadLimit, "body_patience", 0.5)
    with served_by(echo) as port, connect(f"ws://127.0.0.1:{port}") as page:
        time.sleep(2)
        page.send("still there?")
        assert page.recv(timeout=SOON) == "still there?"


# -- several processes ------------------------------------------------------------------------------------------------


def test_the_front_drops_half_sent_requests_and_answers_others(tmp_path: Path) -> None:
    signer = load_signer(tmp_path)
    head = request(f"{COOKIE}={signer.sign(signer.new_browser())}")
    with ExitStack() as stack:
        with few_files(150):
            process, port = stack.enter_context(front(tmp_path, FRONT_PATIENCE="2"))
        assert ask(port, head)[1] == head
        assert files_of(process.pid) > 400
        held = hold(port, 200, 4, lambda: ask(port, head), seconds=30)
    assert len(held.dropped) == 200 and 1.9 < min(held.dropped) and max(held.dropped) < 2.0 + 2 * SOON
    assert max(held.waits) < SOON


def test_the_front_holds_so_many_of_one_address_and_no_more(tmp_path: Path) -> None:
    head = request()
    with front(tmp_path, FRONT_PATIENCE="3") as (_, port):
        held = hold(port, MOST_OF_ONE + 50, 1, lambda: ask(port, head), seconds=30)
    at_once = [seconds for seconds in held.dropped if seconds < 2.5]
    assert len(held.dropped) == MOST_OF_ONE + 50 and len(at_once) == 50


def files_of(pid: int) -> int:
    """Files that a process may have open."""
    line = next(
        line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max open files")
    )
    return int(line.split()[3])


def test_ten_seconds_it_is() -> None:
    assert limits.PATIENCE == head_limit.HeadLimit.patience == 10
    assert limits.BODY_PATIENCE == head_limit.HeadLimit.body_patience == 20 and limits.SLOWEST_BODY == 500


# -- the real app -----------------------------------------------------------------------------------------------------


@pytest.mark.reliability
@pytest.mark.parametrize("addresses", [1, 10])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_thousand_half_sent_requests_hold_up_nobody(
    repository: Path, tmp_path: Path, figure: Keep, processes: int, addresses: int
) -> None:
    assert limits.raise_file_limit() > 1200, "of the test itself, which holds the other ends"
    with ExitStack() as stack:
        with few_files(1000):
            served = stack.enter_context(serving(repository, tmp_path / "data", processes=processes))
        visitor = Visitor(served.address)
        pages = cycle(["/", "/step_through", "/about", "/readyz"])
        assert visitor.get("/about") == 200
        port = int(served.address.rpartition(":")[2])
        held = hold(port, 1000, addresses, lambda: visitor.get(next(pages)), seconds=60)
    last, longest = max(held.dropped, default=0.0), max(held.waits)
    is_met = len(held.dropped) == 1000 and last < limits.PATIENCE + SOON and longest < SOON
    figure(
        f"1,000 requests whose head never ends, of {addresses} addresses, {processes} serving processes",
        "each dropped within 12 s, others answered within 2 s",
        f"{len(held.dropped)} dropped, the last after {last:.1f} s; longest of {len(held.waits)} answers {longest:.2f} s",
        is_met,
    )
    assert is_met

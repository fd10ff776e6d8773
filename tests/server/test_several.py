"""The process in front: who goes where, what is read of a connection, and what happens when a process dies."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.host.identity import COOKIE, load_signer
from app.server import several
from app.server.several import LATELY, Assignment, browser_in
from tests.prerequisites import REPOSITORY

PATIENCE = 60  # seconds; a busy machine is slow
FRONT = """
import sys
import os
from app.__main__ import listen
from app.server import several
from app.server.several import Front
from app.host.identity import load_signer
from pathlib import Path
listener = listen("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
several.PATIENCE = float(os.environ.get("FRONT_PATIENCE", several.PATIENCE))
sys.exit(Front(listener, 3, load_signer(Path(sys.argv[1])), [sys.executable, "-m", "tests.server.echo_worker"]).run())
"""


def test_browsers_are_spread_evenly_and_stay_where_they_are() -> None:
    assignment = Assignment(3)
    first = {f"browser {number}": assignment.of(f"browser {number}", now=float(number)) for number in range(30)}
    assert sorted(list(first.values()).count(worker) for worker in range(3)) == [10, 10, 10]
    assert all(assignment.of(browser, now=40.0) == worker for browser, worker in first.items())


def test_who_left_long_ago_does_not_count_but_is_still_known() -> None:
    assignment = Assignment(2)
    assert [assignment.of(name, 0.0) for name in "abcd"] == [0, 1, 0, 1]
    assignment.of("a", LATELY)
    assignment.of("c", LATELY)  # both of worker 0 are here, those of worker 1 were not seen for a while
    later = LATELY + 1
    assert assignment.of("e", later) == 1
    assert assignment.of("b", later) == 1


def test_who_has_no_cookie_goes_in_turn_and_is_not_remembered() -> None:
    assignment = Assignment(2)
    assert sorted(assignment.of(None, 0.0) for _ in range(10)) == [0] * 5 + [1] * 5
    assert assignment.of("a", 0.0) == 0


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several, "MOST_BROWSERS", 5)
    assignment = Assignment(2)
    for number in range(20):
        assignment.of(str(number), now=0.0)
    assert list(assignment.browsers) == [str(number) for number in range(15, 20)]


def request(cookie: str = "", name: str = "Cookie", body: str = "") -> bytes:
    line = f"{name}: {cookie}\r\n" if cookie else ""
    return f"GET /step_through HTTP/1.1\r\nHost: localhost\r\n{line}Accept: */*\r\n\r\n{body}".encode()


def test_the_browser_is_read_from_its_cookie_only(tmp_path: Path) -> None:
    signer = load_signer(tmp_path)
    browser = signer.new_browser()
    ours = f"{COOKIE}={signer.sign(browser)}"
    assert browser_in(request(ours), signer) == browser
    assert browser_in(request(f"other=1; {ours}; last=2", name="cookie"), signer) == browser
    assert browser_in(request(), signer) is None
    assert browser_in(request(f"{COOKIE}={browser}.{'0' * 64}"), signer) is None
    assert browser_in(request(body=f"Cookie: {ours}\r\n"), signer) is None
    assert browser_in(request(ours, name="X-Cookie"), signer) is None
    assert browser_in(b"\xff\xfe garbage", signer) is None


@contextmanager
def front(folder: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", FRONT, str(folder)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def ask(port: int, head: bytes, parts: int = 1) -> tuple[int, bytes]:
    """The number of the process that answered, and what it read. The head goes out in so many parts."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        size = -(-len(head) // parts)
        for at in range(0, len(head), size):
            connection.sendall(head[at : at + size])
            time.sleep(0.05 if parts > 1 else 0)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    number, _, read = answer.partition(b"\n")
    return int(number), read


@pytest.fixture
def cookies(tmp_path: Path) -> list[str]:
    signer = load_signer(tmp_path)
    return [f"{COOKIE}={signer.sign(signer.new_browser())}" for _ in range(6)]


def test_all_connections_of_a_browser_reach_one_process_with_every_byte(tmp_path: Path, cookies: list[str]) -> None:
    with front(tmp_path) as (_, port):
        heads = [request(cookie) for cookie in cookies]
        first = [ask(port, head) for head in heads]
        again = [ask(port, head, parts=4) for head in reversed(heads)][::-1]
    assert [number for number, _ in first] == [number for number, _ in again]
    assert [read for _, read in first] == [read for _, read in again] == heads
    assert len({number for number, _ in first}) == 3


def test_a_connection_that_says_nothing_holds_up_nobody(tmp_path: Path, cookies: list[str]) -> None:
    with front(tmp_path) as (_, port), socket.create_connection(("127.0.0.1", port)) as silent:
        silent.sendall(b"GET / HT")
        assert ask(port, request(cookies[0]))[1] == request(cookies[0])


@pytest.mark.parametrize("said", [b"", b"GET / HT"])
def test_a_connection_that_ends_before_its_head_is_closed_and_costs_nothing_more(tmp_path: Path, said: bytes) -> None:
    """It stays readable for ever after its end, so whoever waits for more of it is woken without pause."""
    with (
        front(tmp_path) as (_, port),
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE / 2) as connection,
    ):
        connection.sendall(said)
        time.sleep(0.3)  # what was said is looked at before the end comes
        connection.shutdown(socket.SHUT_WR)
        assert _is_over(connection)


def test_a_connection_that_is_broken_off_before_its_head_holds_up_nobody(tmp_path: Path, cookies: list[str]) -> None:
    with front(tmp_path) as (process, port):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(b"GET / HT")
        time.sleep(0.3)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # no farewell
        connection.close()
        time.sleep(0.3)
        spent = _seconds_of(process.pid)
        time.sleep(1)
        assert _seconds_of(process.pid) - spent < 0.5
        assert ask(port, request(cookies[0]))[1] == request(cookies[0])


def _seconds_of(number: int) -> float:
    fields = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_head_that_trickles_in_is_waited_for_no_longer_than_any_other(tmp_path: Path) -> None:
    with front(tmp_path, FRONT_PATIENCE="2") as (_, port), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(0.1)
        until = time.monotonic() + PATIENCE
        over = False
        while not over and time.monotonic() < until:
            try:
                connection.sendall(b"x")
                over = _is_over(connection)
            except TimeoutError:
                pass
            except OSError:
                over = True
        assert over


def _is_over(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:  # closed with bytes that nobody took
        return True


def test_a_process_that_dies_is_replaced(tmp_path: Path, cookies: list[str]) -> None:
    with front(tmp_path) as (_, port):
        number, _ = ask(port, request(cookies[0]))
        others = {ask(port, request(cookie))[0] for cookie in cookies} - {number}
        os.kill(number, signal.SIGKILL)
        until = time.monotonic() + PATIENCE
        answered = number
        while answered == number and time.monotonic() < until:
            try:
                answered = ask(port, request(cookies[0]))[0]
            except (ValueError, OSError):  # it died with the connection in its hands
                time.sleep(0.1)
        assert answered not in {number, *others}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_ends_and_so_do_all_processes(tmp_path: Path, cookies: list[str], number: int) -> None:
    with front(tmp_path) as (process, port):
        serving = {ask(port, request(cookie))[0] for cookie in cookies}
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
    assert len(serving) == 3
    assert not any(Path(f"/proc/{worker}").exists() for worker in serving)


def test_processes_end_with_the_one_in_front(tmp_path: Path, cookies: list[str]) -> None:
    with front(tmp_path) as (process, port):
        serving = {ask(port, request(cookie))[0] for cookie in cookies}
        process.kill()
        process.wait()
        until = time.monotonic() + PATIENCE
        while any(_is_alive(worker) for worker in serving) and time.monotonic() < until:
            time.sleep(0.1)
        assert not any(_is_alive(worker) for worker in serving)


def _is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_processes_that_cannot_serve_end_it_with_their_status(tmp_path: Path) -> None:
    with front(tmp_path, ECHO_FAILS="1") as (process, _):
        assert process.wait(PATIENCE) == 3

"""The front process of several workers: it accepts connections and hands each one to a worker.

Streamlit keeps a page's session, its uploads and its downloads in the memory of one process, so all connections of a
browser must reach the same worker. The front tells a browser by its cookie. It only peeks at the head of a connection's
first request, and sees no more of it.

Why this is our own: `uvicorn --workers` shares one socket and gives each connection to any worker, which breaks uploads
and downloads. nginx can keep a browser on one server (`docs/deployment.md` says how, for several machines), but it is one
more program to install and configure, and `l2m app` is to work on a laptop. The front carries no traffic, so it costs a
connection one look: with three workers on two cores, 50 people with a second of thought each wait 0.11 s for a step
(median) and 0.51 s (95th percentile), without an error (`docs/results/reliability.md`).
"""

from __future__ import annotations

import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from app.host.identity import COOKIE, Signer
from app.server import READY
from app.server.limits import PATIENCE, WaitingConnections, waiting_connections

LONGEST_HEAD = 65_536  # bytes within which the cookie must come
LATELY = 600.0  # seconds for which a browser counts as active after its last connection
MOST_BROWSERS = 100_000  # remembered
STOPS_WITHIN = 15.0  # seconds for a worker to stop by itself; then it is killed
BREATH = 0.01  # seconds to wait when no connection can be accepted
PAUSE = 1.0  # seconds from a worker's start to the earliest start of its replacement
_COOKIE = re.compile(rb"(?im)^cookie:[^\r\n]*?\b" + COOKIE.encode() + rb"=([^;\s]+)")


class Assignment:
    """Which worker serves which browser. A new browser goes to the worker with the fewest active ones."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._of: OrderedDict[str, tuple[int, float]] = OrderedDict()  # browser → worker, when last seen; latest last
        self._next = 0

    @property
    def browsers(self) -> tuple[str, ...]:
        """Those that are remembered, the latest last."""
        return tuple(self._of)

    def of(self, browser: str | None, now: float) -> int:
        """The worker's index."""
        if browser is None:  # a first page is the same from every worker
            self._next = (self._next + 1) % self.workers
            return self._next
        worker = self._of[browser][0] if browser in self._of else self._least_busy(now)
        self._of[browser] = (worker, now)
        self._of.move_to_end(browser)
        if len(self._of) > MOST_BROWSERS:
            self._of.popitem(last=False)
        return worker

    def _least_busy(self, now: float) -> int:
        counts = [0] * self.workers
        for worker, seen in reversed(self._of.values()):
            if now - seen > LATELY:
                break
            counts[worker] += 1
        return counts.index(min(counts))


def browser_in(head: bytes, signer: Signer) -> str | None:
    """The browser that a request's head names, where the cookie is one of ours."""
    found = _COOKIE.search(head.partition(b"\r\n\r\n")[0])
    return signer.read(found[1].decode("latin-1").strip('"')) if found else None


@dataclass
class WorkerProcess:
    """A worker's process, and the socket over which it is handed connections."""

    command: list[str]
    channel: socket.socket = field(init=False)
    process: subprocess.Popen[bytes] = field(init=False)
    since: float = field(init=False)

    def start(self) -> None:
        self.since = time.monotonic()
        self.channel, theirs = socket.socketpair()
        self.channel.setblocking(False)  # one that hangs holds up nobody else
        with theirs:
            command = [*self.command, str(theirs.fileno())]
            self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()])

    def hand(self, connection: socket.socket) -> None:
        """A connection that comes before the worker is ready waits in the channel."""
        try:
            socket.send_fds(self.channel, [b"c"], [connection.fileno()])
        except OSError:  # it has died or hangs; the browser tries again
            pass

    def stop(self) -> None:
        self.process.terminate()
        self.channel.close()


class Front:
    """listener: bound and listening. command: of a worker, without the number of its channel."""

    def __init__(
        self, listener: socket.socket, processes: int, signer: Signer, command: list[str] | None = None
    ) -> None:
        command = command or [sys.executable, "-m", "app.server.worker"]
        self.listener, self.signer = listener, signer
        self.assignment = Assignment(processes)
        self.processes = [WorkerProcess(command) for _ in range(processes)]
        self._selector = selectors.DefaultSelector()
        self._waiting: WaitingConnections[socket.socket] = waiting_connections()
        self._seen: dict[socket.socket, int] = {}  # of those that wait → bytes that lie there
        self._ended: list[tuple[WorkerProcess, float]] = []  # workers to start again, and when
        self._has_served = False
        self._stopping = False

    def run(self) -> int:
        """Serves until told to stop. Returns the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop_on_signal)
        wake, woken = socket.socketpair()  # a signal ends the wait for connections
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        self._selector.register(wake, selectors.EVENT_READ)
        self.listener.setblocking(False)
        self._selector.register(self.listener, selectors.EVENT_READ)
        for process in self.processes:
            self._start(process)
        status = 0
        while not self._stopping and status == 0:
            for key, _ in self._selector.select(timeout=PAUSE):
                if key.fileobj is self.listener:
                    self._accept()
                elif isinstance(key.data, WorkerProcess):
                    status = status or self._listen_to(key.data)
                elif key.fileobj is not wake and isinstance(key.fileobj, socket.socket):
                    self._route(key.fileobj)
            self._start_again()
            self._drop_late()
        self._stop_workers()
        return status

    # -- workers ----------------------------------------------------------------------------------------------------

    def _start(self, process: WorkerProcess) -> None:
        process.start()
        self._selector.register(process.channel, selectors.EVENT_READ, process)

    def _listen_to(self, process: WorkerProcess) -> int:
        """Replaces a worker that ended. Where none could ever serve, returns its status, which ends the front."""
        try:
            message = process.channel.recv(1)
        except OSError:
            message = b""
        if message == READY:
            self._has_served = True
            return 0
        self._selector.unregister(process.channel)
        process.channel.close()
        status = process.process.wait()
        if self._stopping:
            return 0
        if not self._has_served:
            return status or 1
        print(f"l2m app: a serving process ended with status {status}; another takes its place.", file=sys.stderr)
        self._ended.append((process, process.since + PAUSE))
        return 0

    def _start_again(self) -> None:
        now = time.monotonic()
        for process, _ in [(process, due) for process, due in self._ended if due <= now]:
            self._start(process)
        self._ended = [(process, due) for process, due in self._ended if due > now]

    def _stop_workers(self) -> None:
        for process in self.processes:
            process.stop()
        until = time.monotonic() + STOPS_WITHIN
        for process in self.processes:
            try:
                process.process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.process.kill()
                process.process.wait()
        self._selector.close()

    def _stop_on_signal(self, number: int, frame: object) -> None:
        self._stopping = True

    # -- connections ------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            connection, address = self.listener.accept()
        except OSError:  # gone already, or there are as many connections as may be open: it would wake us at once again
            time.sleep(BREATH)
            return
        connection.setblocking(False)
        self._seen[connection] = 0
        self._selector.register(connection, selectors.EVENT_READ)
        makes_way = self._waiting.add(connection, address[0], time.monotonic())
        if makes_way is not None:
            self._close(makes_way)

    def _route(self, connection: socket.socket) -> None:
        if connection not in self._waiting:  # it made way for another one since it was seen to be ready
            return
        try:
            head = connection.recv(LONGEST_HEAD, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            head = b""
        if len(head) <= self._seen[connection]:  # woken by nothing new: its end, which would wake us again and again
            self._close(connection)
        elif b"\r\n\r\n" in head or len(head) == LONGEST_HEAD:
            self._forget(connection)
            worker = self.assignment.of(browser_in(head, self.signer), time.monotonic())
            with connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
                self.processes[worker].hand(connection)
        else:  # wake up again when there is more than this
            self._seen[connection] = len(head)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(head) + 1)

    def _drop_late(self) -> None:
        for connection in self._waiting.since_before(time.monotonic() - PATIENCE):
            self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        self._waiting.discard(connection)
        del self._seen[connection]

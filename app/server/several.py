"""The process in front of several that serve: it accepts connections and hands each one over, and sees no more of it.

A page lives in one process, and its uploads and downloads must reach the same one. So all connections of a browser, told
by its cookie, go to one process. Only the head of a connection's first request is looked at, and it is left unread.
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

LONGEST_HEAD = 65_536  # bytes in which the cookie must come
PATIENCE = 120.0  # seconds for it; browsers open connections ahead of need
LATELY = 600.0  # seconds for which a browser counts as being here
MOST_BROWSERS = 100_000  # remembered
STOPS_WITHIN = 15.0  # seconds, then it is ended
BREATH = 0.01  # seconds
PAUSE = 1.0  # seconds after its start before another process takes the place of one that ended
_COOKIE = re.compile(rb"(?im)^cookie:[^\r\n]*?\b" + COOKIE.encode() + rb"=([^;\s]+)")


class Places:
    """Which process serves which browser: a new one goes where the fewest are lately."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._of: OrderedDict[str, tuple[int, float]] = OrderedDict()  # browser → process, when last seen; latest last
        self._turn = 0

    def of(self, browser: str | None, now: float) -> int:
        if browser is None:  # a first page is the same everywhere
            self._turn = (self._turn + 1) % self.processes
            return self._turn
        place = self._of[browser][0] if browser in self._of else self._emptiest(now)
        self._of[browser] = (place, now)
        self._of.move_to_end(browser)
        if len(self._of) > MOST_BROWSERS:
            self._of.popitem(last=False)
        return place

    def _emptiest(self, now: float) -> int:
        counts = [0] * self.processes
        for place, seen in reversed(self._of.values()):
            if now - seen > LATELY:
                break
            counts[place] += 1
        return counts.index(min(counts))


def browser_in(head: bytes, signer: Signer) -> str | None:
    """The browser that a request's head names, where the cookie is one of ours."""
    found = _COOKIE.search(head.partition(b"\r\n\r\n")[0])
    return signer.read(found[1].decode("latin-1").strip('"')) if found else None


@dataclass
class Process:
    """A serving process and the socket over which it is handed connections."""

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
        """What comes before it is ready waits in the channel."""
        try:
            socket.send_fds(self.channel, [b"c"], [connection.fileno()])
        except OSError:  # it has died or hangs; the browser tries again
            pass

    def stop(self) -> None:
        self.process.terminate()
        self.channel.close()


class Front:
    """listener: bound and listening. command: of a serving process, without the number of its channel."""

    def __init__(
        self, listener: socket.socket, processes: int, signer: Signer, command: list[str] | None = None
    ) -> None:
        command = command or [sys.executable, "-m", "app.server.worker"]
        self.listener, self.signer = listener, signer
        self.places = Places(processes)
        self.processes = [Process(command) for _ in range(processes)]
        self._selector = selectors.DefaultSelector()
        self._waiting: dict[socket.socket, tuple[float, int]] = {}  # head not come → until when, bytes that lie there
        self._ended: list[tuple[Process, float]] = []  # processes to start again, and when
        self._has_served = False
        self._stopping = False

    def run(self) -> int:
        """Until told to stop; the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._be_told)
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
                elif isinstance(key.data, Process):
                    status = status or self._listen_to(key.data)
                elif key.fileobj is not wake and isinstance(key.fileobj, socket.socket):
                    self._look_at(key.fileobj)
            self._start_again()
            self._drop_the_silent()
        self._end()
        return status

    # -- processes --------------------------------------------------------------------------------------------------

    def _start(self, process: Process) -> None:
        process.start()
        self._selector.register(process.channel, selectors.EVENT_READ, process)

    def _listen_to(self, process: Process) -> int:
        """One that ends is replaced; where none could ever serve, it is over, with its status."""
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

    def _end(self) -> None:
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

    def _be_told(self, number: int, frame: object) -> None:
        self._stopping = True

    # -- connections ------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:  # gone already, or there are as many connections as may be open: it would wake us at once again
            time.sleep(BREATH)
            return
        connection.setblocking(False)
        self._waiting[connection] = (time.monotonic() + PATIENCE, 0)
        self._selector.register(connection, selectors.EVENT_READ)

    def _look_at(self, connection: socket.socket) -> None:
        until, seen = self._waiting[connection]
        try:
            head = connection.recv(LONGEST_HEAD, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            head = b""
        if len(head) <= seen:  # woken by nothing new: its end, which would wake us again and again
            self._forget(connection)
            connection.close()
        elif b"\r\n\r\n" in head or len(head) == LONGEST_HEAD:
            self._forget(connection)
            place = self.places.of(browser_in(head, self.signer), time.monotonic())
            with connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
                self.processes[place].hand(connection)
        else:  # wake up again when there is more than this
            self._waiting[connection] = (until, len(head))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(head) + 1)

    def _drop_the_silent(self) -> None:
        now = time.monotonic()
        for connection in [c for c, (until, _) in self._waiting.items() if until < now]:
            self._forget(connection)
            connection.close()

    def _forget(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._waiting[connection]

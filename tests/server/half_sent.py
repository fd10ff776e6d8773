"""Many requests whose heads never end, held open on this computer, and how others are answered meanwhile."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


@dataclass
class Held:
    """Seconds that others waited for an answer, and after which each half-sent request was dropped."""

    waits: list[float] = field(default_factory=list)
    dropped: list[float] = field(default_factory=list)


def hold(port: int, count: int, addresses: int, ask: Callable[[], object], seconds: float) -> Held:
    """Opens so many from so many loopback addresses, and asks again and again until all are dropped or time is up."""
    held = Held()
    with ExitStack() as stack:
        began: dict[socket.socket, float] = {}
        for number in range(count):
            source = (f"127.0.1.{1 + number % addresses}", 0)
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30, source_address=source))
            connection.sendall(HALF)
            began[connection] = time.monotonic()
        ended = time.monotonic() + seconds
        poll = select.poll()
        by_number = {connection.fileno(): connection for connection in began}
        for number in by_number:
            poll.register(number, select.POLLIN)
        while by_number and time.monotonic() < ended:
            asked = time.monotonic()
            ask()
            held.waits.append(time.monotonic() - asked)
            for number, _ in poll.poll(100):
                held.dropped.append(time.monotonic() - began[by_number.pop(number)])
                poll.unregister(number)
    return held


@contextmanager
def few_files(most: int) -> Iterator[None]:
    """A process that is started meanwhile may open so many files, unless it asks for more."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

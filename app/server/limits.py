"""What connections that have not asked anything yet may take: time, and so many connections at once."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

PATIENCE = 10.0  # seconds within which a request's head must have come
BODY_PATIENCE = 20.0  # seconds that its body may rest, or lag behind the slowest that is waited for
SLOWEST_BODY = 500.0  # bytes in a second
MOST_OF_ONE = 256  # of one address; many people may share one, a proxy's or a hospital's
MOST_FILES = 65_536  # open at once, where the system names no limit or a useless one

Connection = TypeVar("Connection", bound=Hashable)


class WaitingConnections(Generic[Connection]):
    """Those whose head has not come. Where there are too many, the oldest makes way, since a head takes no time to send.

    most_of_one: for each network address. most: of all.
    """

    def __init__(self, most_of_one: int, most: int) -> None:
        self._most_of_one, self._most = most_of_one, most
        self._since: dict[Connection, tuple[float, str]] = {}  # the oldest first
        self._of: dict[str, dict[Connection, None]] = {}  # address → its connections, the oldest first

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, connection: object) -> bool:
        return connection in self._since

    def add(self, connection: Connection, address: str, now: float) -> Connection | None:
        """The one that must make way for it, if any."""
        self._since[connection] = (now, address)
        of_one = self._of.setdefault(address, {})
        of_one[connection] = None
        if len(of_one) > self._most_of_one:
            return self._remove(next(iter(of_one)))
        return self._remove(next(iter(self._since))) if len(self._since) > self._most else None

    def discard(self, connection: Connection) -> None:
        if connection in self._since:
            self._remove(connection)

    def since_before(self, moment: float) -> list[Connection]:
        """Takes out those that have waited since then or longer."""
        overdue = []
        for connection, (since, _) in self._since.items():
            if since > moment:
                break
            overdue.append(connection)
        return [self._remove(connection) for connection in overdue]

    def _remove(self, connection: Connection) -> Connection:
        _, address = self._since.pop(connection)
        del self._of[address][connection]
        if not self._of[address]:
            del self._of[address]
        return connection


def raise_file_limit() -> int:
    """As many open files as the system allows this process; the number. A connection is one of them."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def waiting_connections() -> WaitingConnections[Connection]:
    """They take at most half of the files, so that those who ask something can connect."""
    return WaitingConnections(MOST_OF_ONE, raise_file_limit() // 2)

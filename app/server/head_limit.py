"""A connection's protocol that waits for a request's head only so long.

uvicorn limits the time between two requests of a connection (`timeout_keep_alive`), but neither the time before the first
one nor the time from a head's first byte to its last: a half-sent request would keep its connection for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.server.limits import PATIENCE, WaitingConnections, waiting_connections


class HeadLimit(H11Protocol):
    patience: ClassVar[float] = PATIENCE
    _waiting: ClassVar[WaitingConnections[HeadLimit] | None] = None  # of this process, once there is a connection

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._out_of_patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:  # before a head's end, of the first request or of a later one
            self._wait_for_head()
        else:
            self._stop_waiting()

    def _wait_for_head(self) -> None:
        if self._out_of_patience is not None or self.transport.is_closing():
            return
        self._out_of_patience = self.loop.call_later(self.patience, self._drop)
        makes_way = self._all_waiting().add(self, self.client[0] if self.client else "", self.loop.time())
        if makes_way is not None:
            makes_way._drop()

    def _stop_waiting(self) -> None:
        if self._out_of_patience is not None:
            self._out_of_patience.cancel()
            self._out_of_patience = None
            self._all_waiting().discard(self)

    def _drop(self) -> None:
        self._stop_waiting()
        self.transport.close()

    @classmethod
    def _all_waiting(cls) -> WaitingConnections[HeadLimit]:
        if HeadLimit._waiting is None:
            HeadLimit._waiting = waiting_connections()
        return HeadLimit._waiting

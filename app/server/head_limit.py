"""A connection's protocol that waits for a request's head, and for its body, only so long.

uvicorn limits the time between two requests of a connection (`timeout_keep_alive`), but neither the time before the first
one nor the time from a request's first byte to its last: a half-sent request would keep its connection for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.server.limits import BODY_PATIENCE, PATIENCE, SLOWEST_BODY, WaitingConnections, waiting_connections


class HeadLimit(H11Protocol):
    patience: ClassVar[float] = PATIENCE
    body_patience: ClassVar[float] = BODY_PATIENCE
    waiting: ClassVar[WaitingConnections[HeadLimit] | None] = None  # of this process, once there is a connection

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._out_of_patience: asyncio.TimerHandle | None = None
        self._look_at_body: asyncio.TimerHandle | None = None
        self._body_due = 0.0  # when more of the body must have come

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_waiting_for_body()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.get_protocol() is not self:  # a web socket by now, whose request is never read to its end
            self._stop_waiting()
            self._stop_waiting_for_body()
            return
        if self.conn.their_state is h11.IDLE:  # before a head's end, of the first request or of a later one
            self._wait_for_head()
        else:
            self._stop_waiting()
        if self.conn.their_state is h11.SEND_BODY:
            self._wait_for_body(len(data))
        else:
            self._stop_waiting_for_body()

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

    def _wait_for_body(self, came: int) -> None:
        """So many bytes of it came. Each earns a little time, but never more than there is at first."""
        now = self.loop.time()
        if self._look_at_body is None:
            self._body_due = now + self.body_patience
            self._look_at_body = self.loop.call_at(self._body_due, self._drop_if_body_is_late)
        self._body_due = min(self._body_due + came / SLOWEST_BODY, now + self.body_patience)

    def _drop_if_body_is_late(self) -> None:
        now = self.loop.time()
        if self.flow.read_paused:  # it is us who do not read
            self._body_due = now + self.body_patience
        if self._body_due <= now:
            self._drop()
        else:
            self._look_at_body = self.loop.call_at(self._body_due, self._drop_if_body_is_late)

    def _stop_waiting_for_body(self) -> None:
        if self._look_at_body is not None:
            self._look_at_body.cancel()
            self._look_at_body = None

    def _drop(self) -> None:
        self._stop_waiting()
        self._stop_waiting_for_body()
        self.transport.close()

    @classmethod
    def _all_waiting(cls) -> WaitingConnections[HeadLimit]:
        if HeadLimit.waiting is None:
            HeadLimit.waiting = waiting_connections()
        return HeadLimit.waiting

"""A worker: one of several serving processes, which gets its connections from the front (`python -m app.server.worker N`).

N is the file descriptor of an open socket to the front. Connections come over it; when it closes, the worker stops.
"""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn

from app.server import READY
from app.server.one import configure
from l2m_core.errors import L2MError


class Worker(uvicorn.Server):
    """A server without a socket of its own."""

    def __init__(self, config: uvicorn.Config, channel: socket.socket) -> None:
        super().__init__(config)
        self.channel = channel
        self._taking: set[asyncio.Task[object]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        if self.started:
            self.channel.setblocking(False)
            asyncio.get_running_loop().add_reader(self.channel, self._take)
            self.channel.send(READY)

    def _take(self) -> None:
        try:
            message, handles, _, _ = socket.recv_fds(self.channel, 1, 1)
        except BlockingIOError:
            return
        if not message:  # the front is gone
            asyncio.get_running_loop().remove_reader(self.channel)
            self.should_exit = True
        for handle in handles:
            task = asyncio.get_running_loop().create_task(self._serve_connection(socket.socket(fileno=handle)))
            self._taking.add(task)
            task.add_done_callback(self._taking.discard)

    async def _serve_connection(self, connection: socket.socket) -> None:
        def protocol() -> asyncio.Protocol:
            return self.config.http_protocol_class(  # type: ignore[call-arg, return-value]
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )

        try:
            await asyncio.get_running_loop().connect_accepted_socket(protocol, connection)
        except OSError:  # gone before it was served
            connection.close()


def main(handle: int) -> int:
    with socket.socket(fileno=handle) as channel:
        try:
            worker = Worker(configure(), channel)
            worker.run()
        except L2MError as error:
            print(f"l2m app: {error}", file=sys.stderr)
            return 1
        return 0 if worker.started else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

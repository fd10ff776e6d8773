"""One process that serves the app on a listening socket."""

from __future__ import annotations

import logging
import socket

import uvicorn

from app.server.head_limit import HeadLimit
from app.server.limits import raise_file_limit


def serve(listener: socket.socket) -> int:
    """Serve until told to stop; the exit status."""
    raise_file_limit()
    server = uvicorn.Server(configure())
    server.run(sockets=[listener])
    return 0 if server.started else 1


def configure() -> uvicorn.Config:
    from app.asgi import app

    config = uvicorn.Config(
        app,
        http=HeadLimit,
        ws="websockets-sansio",
        log_level="warning",
        ws_per_message_deflate=False,  # a step is some ten kilobytes, and to compress them takes a part of its time
        # An open page keeps its connection for ever; a stop must not wait for it.
        timeout_graceful_shutdown=3,
    )
    # Only now, since the lines above set all loggers up. Request lines hold the addresses of downloads, which open them:
    # they do not belong in a log. Streamlit gives the access log a handler of its own, so `access_log=False` would not be
    # enough.
    logging.getLogger("uvicorn.access").disabled = True
    # "connection open" and the like name the visitor's network address.
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.levelno >= logging.WARNING)
    return config

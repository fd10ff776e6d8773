"""`python -m app.api`, also `l2m serve`: answers other systems over HTTP, on this computer only unless told otherwise."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from app.__main__ import listen
from app.api.application import make_app
from app.api.tokens import load_token, token_file
from app.host import log_filter
from app.host.own_names import ANY_ADDRESS, LOOPBACK, own_names
from app.host.services import NOBODY, Services
from app.server.head_limit import HeadLimit
from app.server.limits import raise_file_limit
from app.settings import AppSettings
from l2m_core.answering import devices
from l2m_core.cli import port_number, program
from l2m_core.errors import L2MError

PORT = 8600
# Seconds that a connection is kept for a next request: longer than clients keep it (httpx 5 s, as uvicorn would), so that none
# asks on one that is being closed.
KEEP_ALIVE = 15


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("app.api"), description="Answer other systems over HTTP: belief, ranking and verdict of a patient."
    )
    parser.add_argument(
        "--address", default="127.0.0.1", help="where to listen (default: %(default)s, which is this computer only)"
    )
    parser.add_argument("--port", type=port_number, default=PORT, help="default: %(default)s; 0: any free one")
    parser.add_argument(
        "--name", action="append", default=[], help="a further name under which it is asked, by a proxy"
    )
    parser.add_argument("--data-dir", type=Path, help="folder of the app's data; the same as L2M_DATA_DIR")
    devices.add_option(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(arguments)
    if options.data_dir is not None:
        os.environ["L2M_DATA_DIR"] = str(options.data_dir.resolve())
    devices.apply_option(options.device)
    try:
        listener = listen(options.address, options.port)
    except OSError as error:
        print(
            f"l2m serve: cannot listen at {options.address}, port {options.port} ({error.strerror}).", file=sys.stderr
        )
        return 1
    try:
        return serve(listener, options.address, options.name)
    except L2MError as error:
        print(f"l2m serve: {error}", file=sys.stderr)
        return 1


def serve(listener: socket.socket, address: str, names: Sequence[str]) -> int:
    """Serve until told to stop; the exit status."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # questions spread over the cores
    settings = AppSettings.from_environment().prepare()
    token = token_file(settings.data_dir)
    app = make_app(services := Services(settings), load_token(token), hosts_of(address, names))
    model = services.model(NOBODY)  # before the first question, and so that a damaged model is told here
    raise_file_limit()
    server = uvicorn.Server(configure(app))
    port = listener.getsockname()[1]
    print(f"L2M answers at http://{'localhost' if address in LOOPBACK else address}:{port} — stop it with Ctrl+C")
    print(f"Who asks needs the token in {token}")
    print(model.release.device.sentence, flush=True)
    if address not in LOOPBACK:
        print("Other computers can reach it, and read along: put a proxy with TLS in front.", flush=True)
    server.run(sockets=[listener])
    return 0 if server.started else 1


def hosts_of(address: str, names: Sequence[str]) -> list[str]:
    """Names under which requests may come; any, of a server on all interfaces to which none is given."""
    if address in ANY_ADDRESS and not names:
        return ["*"]
    return own_names(address, *names)


def configure(app: object) -> uvicorn.Config:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=HeadLimit,
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=3,
        timeout_keep_alive=KEEP_ALIVE,
    )
    log_filter.install()
    # Request lines name a cohort, and who asks: they do not belong in a log.
    logging.getLogger("uvicorn.access").disabled = True
    return config


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

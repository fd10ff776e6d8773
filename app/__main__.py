"""`python -m app`, also `l2m app`: serves the app with uvicorn and opens it in the browser."""

import argparse
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from app.streamlit_contact import addresses
from l2m_core.answering import devices
from l2m_core.cli import port_number
from l2m_core.errors import L2MError

FIRST_PORT = 8501
PORTS_TRIED = 50
MOST_QUEUED = 2048  # connections that nobody has accepted yet; what is over it is tried again a second later


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="l2m app", description="Open the app in the browser.")
    parser.add_argument(
        "--address", default="127.0.0.1", help="where to listen (default: %(default)s, which is this computer only)"
    )
    parser.add_argument(
        "--port", type=port_number, help=f"default: the first free one from {FIRST_PORT} on; 0: any free one"
    )
    parser.add_argument("--data-dir", type=Path, help="folder for the app's data; the same as L2M_DATA_DIR")
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="serving processes, one for each core that many people at once may use (default: 1)",
    )
    devices.add_option(parser)
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(arguments)
    if options.processes < 1 or (options.processes > 1 and not hasattr(socket, "send_fds")):
        print("l2m app: --processes must be 1 or more, and 1 on Windows.", file=sys.stderr)
        return 2
    try:
        listener = listen(options.address, options.port)
    except OSError as error:
        wanted = "no free port" if options.port is None else f"port {options.port}"
        print(
            f"l2m app: cannot listen at {options.address}, {wanted} ({error.strerror}). "
            "Is it running already? Another port: l2m app --port NUMBER",
            file=sys.stderr,
        )
        return 1
    port = listener.getsockname()[1]
    if options.data_dir is not None:
        os.environ["L2M_DATA_DIR"] = str(options.data_dir.resolve())
    devices.apply_option(options.device)
    set_streamlit_defaults(options.address, port)
    print("L2M is starting: it loads its model and the latest cohorts. The address comes when it answers.", flush=True)
    threading.Thread(target=announce, args=(options.address, port, not options.no_browser), daemon=True).start()
    try:
        return serve(listener, options.processes)
    except L2MError as error:
        print(f"l2m app: {error}", file=sys.stderr)
        return 1


def listen(address: str, port: int | None) -> socket.socket:
    """A bound socket: at the port asked for, or at the first free one. Held from here on, so nothing can take it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    candidates = range(FIRST_PORT, FIRST_PORT + PORTS_TRIED) if port is None else [port]
    failure: OSError | None = None
    for candidate in candidates:
        listener = socket.socket(family)
        try:
            # A restart takes the same port at once, while old connections are still closing.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, candidate))
            listener.listen(MOST_QUEUED)
            return listener
        except OSError as error:
            listener.close()
            failure = error
    assert failure is not None
    raise failure


def set_streamlit_defaults(address: str, port: int) -> None:
    """Tell Streamlit where it is served, which uvicorn does not, and keep it from reporting usage to anyone.

    What is set in the environment already stays: a replica behind a proxy has its own address and name.
    """
    os.environ.setdefault("STREAMLIT_SERVER_ADDRESS", address)
    os.environ.setdefault("STREAMLIT_SERVER_PORT", str(port))
    os.environ.setdefault("STREAMLIT_BROWSER_GATHER_USAGE_STATS", "false")


def serve(listener: socket.socket, processes: int) -> int:
    """Serve until told to stop; the exit status."""
    if processes == 1:
        from app.server import one

        return one.serve(listener)
    from app.host.identity import load_signer
    from app.server.several import Front
    from app.settings import AppSettings

    return Front(listener, processes, load_signer(AppSettings.from_environment().prepare().data_dir)).run()


def announce(address: str, port: int, browser: bool) -> None:
    """Once the server answers, print where it is, and open it there."""
    host = "localhost" if address in ("127.0.0.1", "0.0.0.0", "::", "::1") else address
    url = f"http://{host}:{port}"
    # The model is loaded first, which takes a while on a busy machine; if that fails, the process ends, and this too.
    while not is_healthy(f"{url}{addresses.HEALTH}"):
        time.sleep(0.2)
    print(f"L2M is at {url} — stop it with Ctrl+C", flush=True)
    if browser and has_screen():
        webbrowser.open(url)


def is_healthy(url: str) -> bool:
    # A proxy set up for the outside world has no part in a question to this computer.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def has_screen() -> bool:
    """Whether a browser has somewhere to open: without a screen, Linux would start one inside the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

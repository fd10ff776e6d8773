"""The app as an ASGI application: `uvicorn app.asgi:app`, or `l2m app`.

Before the first request, everything heavy is imported, and the model is loaded and answers one step. Cohorts that were in
use when the server stopped are read again, the latest one first. What is in memory by then is left out of garbage
collection (`gc.freeze`), which runs every few seconds for all sessions together.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections.abc import AsyncIterator
from concurrent import futures
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse
from starlette.routing import Route

from app.host import log_filter, services, sign_in, warm_up
from app.host.guard import Guard
from app.host.own_names import ANY_ADDRESS, own_names
from app.host.sweeping import sweep_now_and_then
from app.store import StoreError
from app.streamlit_contact import options, outside, timers
from l2m_core.errors import L2MError

MAIN = Path(__file__).with_name("main.py")
SECONDS_TO_STOP = 2.0  # for a keeper that is just at work
READING_PATIENCE = 5.0  # seconds that the first answer may be put off by the reading of a large cohort

logger = logging.getLogger("l2m.app")


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[dict[str, bool]]:
    import anyio

    await anyio.to_thread.run_sync(prepare)
    stop = threading.Event()
    here = services.get()
    sweeps = (here.forget_deleted, here.store.make_file_whole, here.store.sign_what_waits)
    keepers = [
        threading.Thread(target=keeper, args=(stop, *arguments), daemon=True)
        for keeper, arguments in ((here.runner.keep_moving, ()), (sweep_now_and_then, sweeps))
    ]
    for keeper in keepers:
        keeper.start()
    try:
        yield {"ready": True}
    finally:
        stop.set()
        for keeper in keepers:
            keeper.join(SECONDS_TO_STOP)  # what they still write shall be in the store's file, too
        here.store.close()


def prepare() -> None:
    """Everything that must be in memory before the first request."""
    import torch

    from app.ui import charts

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # sessions spread over the cores; two threads on one busy core are slower than one
    options.set_option("server.allowedHosts", allowed_hosts())
    try:
        reading = warm_up.read_again(services.get())
        warm_up.one_step(services.get(), charts.warm_up)
        print(services.get().model(services.NOBODY).release.device.sentence, flush=True)
        futures.wait([reading], timeout=READING_PATIENCE)
        services.get().runner.pump()  # what waited when the server stopped
    except L2MError as problem:  # the pages say what is wrong and how to mend it
        logger.error("Not ready: %s", problem)
    gc.collect()
    gc.freeze()


def allowed_hosts() -> list[str]:
    """Names under which browsers may reach this server. A server on all interfaces allows any, unless its name is set."""
    chosen = st.get_option("server.allowedHosts")
    address = st.get_option("server.address")
    public = st.get_option("browser.serverAddress") if options.is_set("browser.serverAddress") else None
    if chosen or (address in (None, *ANY_ADDRESS) and public is None):
        return list(chosen)
    return own_names(address, public)


async def readyz(request: Request) -> PlainTextResponse:
    """Whether a user would get an answer now: the database answers, and the model is loaded."""
    import anyio

    def check() -> str:
        try:
            services.get().store.is_ready()
            services.get().model(services.NOBODY)
        except StoreError:
            return "The database is not ready."
        except L2MError:
            return "The model is not ready."
        return ""

    problem = await anyio.to_thread.run_sync(check)
    return PlainTextResponse(problem or "ready", 503 if problem else 200)


async def favicon(request: Request) -> FileResponse:
    return FileResponse(MAIN.parent / "ui" / "favicon.png", media_type="image/png")


def on_script_error(error: Exception) -> bool:
    """Shows a fault of the program without its details, which may be a patient's. The log says where it happened."""
    if isinstance(error, sign_in.SignInNeeded):  # by an action, which runs before the page looks who is there
        st.error(str(error), icon=":material/error:")
        return True
    st.error(
        "Something went wrong in the program; what was recorded is safe. Reload the page to go on. "
        "If it happens again, report it with the time and what you did last.",
        icon=":material/error:",
    )
    return True


# Before Streamlit looks for such settings itself.
_settings = services.get().settings
sign_in.ask_by(sign_in.find_file(), _settings.sign_in_hours, _settings.idle_minutes)
# Cookies of sign-in and of uploads stay valid over a restart.
os.environ.setdefault("STREAMLIT_SERVER_COOKIE_SECRET", services.get().signer.derive("streamlit cookies"))
log_filter.install()
outside.never_look_up()
timers.keep_timers_to_their_page()

app = st.App(
    MAIN,
    lifespan=lifespan,
    routes=[Route("/readyz", readyz), Route("/favicon.png", favicon)],
    middleware=[Middleware(Guard)],
    on_script_error=on_script_error,
)
options.take_environment()  # only now, since the app says where its own config.toml lies, over which they win

"""The app as an ASGI application: `uvicorn app.asgi:app`, or `l2m app`.

Before the first request, everything heavy is imported, and the model is loaded and put through one step. Cohorts that were
in use when the server stopped are read again, the latest one at once. What is in memory by then is set aside from garbage
collection, which happens for all sessions together, now and then.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
import traceback
from collections.abc import AsyncIterator
from concurrent import futures
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse
from starlette.routing import Route
from streamlit import config
from streamlit.config_option import ConfigOption

from app.host import services, sign_in
from app.host.guard import Guard
from app.host.sweeping import sweep_now_and_then
from app.store import StoreError
from l2m_core.errors import ConfigError, L2MError

MAIN = Path(__file__).with_name("main.py")
LOOPBACK = ["localhost", "127.0.0.1", "[::1]", "::1"]
ANY_ADDRESS = ("0.0.0.0", "::")
YES, NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
READING_PATIENCE = 5.0  # seconds that the first answer may be put off by the reading of a large cohort

logger = logging.getLogger("l2m.app")


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[dict[str, bool]]:
    import anyio

    await anyio.to_thread.run_sync(warm_up)
    stop = threading.Event()
    here = services.get()
    for keeper, arguments in ((here.runner.keep_moving, ()), (sweep_now_and_then, (here.forget_deleted,))):
        threading.Thread(target=keeper, args=(stop, *arguments), daemon=True).start()
    try:
        yield {"ready": True}
    finally:
        stop.set()


def warm_up() -> None:
    import torch

    from app.host import warm_up

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # sessions spread over the cores; two threads on one busy core are slower than one
    config.set_option("server.allowedHosts", allowed_hosts())
    try:
        reading = warm_up.read_again(services.get())
        warm_up.one_step(services.get())
        futures.wait([reading], timeout=READING_PATIENCE)
        services.get().runner.pump()  # what waited when the server stopped
    except L2MError as problem:  # the pages say what is wrong and how to mend it
        logger.error("Not ready: %s", problem)
    gc.collect()
    gc.freeze()


def take_variables() -> None:
    """Streamlit's settings from the environment, which it reads by itself only where its own command starts it."""
    for option in list(config.get_config_options().values()):
        text = os.environ.get(option.env_var)
        if text is not None and not option.sensitive:
            config.set_option(option.key, value_of(option, text.strip()), "environment variable")


def value_of(option: ConfigOption, text: str) -> object:
    """As Streamlit's command reads it."""
    if option.multiple:
        return text.split()
    if option.type is bool and text.lower() in (*YES, *NO):
        return text.lower() in YES
    if option.type in (int, float):
        with suppress(ValueError):
            return option.type(text)
    if option.type is str:
        return text
    raise ConfigError(f"{option.env_var} is {text!r}, which is no {option.type.__name__}.")


def allowed_hosts() -> list[str]:
    """Names under which browsers may reach this server. On all interfaces any, unless its public name is stated."""
    chosen = config.get_option("server.allowedHosts")
    address = config.get_option("server.address")
    public = config.get_option("browser.serverAddress") if config.is_manually_set("browser.serverAddress") else None
    if chosen or (address in (None, *ANY_ADDRESS) and public is None):
        return list(chosen)
    return [*LOOPBACK, *(name for name in (address, public) if name and name not in (*LOOPBACK, *ANY_ADDRESS))]


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
    """A fault of the program: said without details, which may be a patient's. The log names the place."""
    if isinstance(error, sign_in.SignInNeeded):  # by an action, which runs before the page looks who is there
        st.error(str(error), icon=":material/error:")
        return True
    st.error(
        "Something went wrong in the program; what was recorded is safe. Reload the page to go on. "
        "If it happens again, report it with the time and what you did last.",
        icon=":material/error:",
    )
    return True


class WithoutValues(logging.Filter):
    """Log records of Streamlit keep where an error happened and lose its words, which may quote a patient's values."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            where = "".join(traceback.format_tb(error.__traceback__))
            record.exc_info = None
            record.exc_text = None
            record.msg = f"{record.getMessage()}\n{where}{type(error).__name__} (its message is not logged)"
            record.args = ()
        return True


def keep_values_out_of_logs() -> None:
    for name in (
        "streamlit.error_util",
        "streamlit.runtime.scriptrunner.script_runner",
        "streamlit.runtime.backend_operation_handler",
        "uvicorn.error",
        "asyncio",
    ):
        logging.getLogger(name).addFilter(WithoutValues())


# Before Streamlit looks for such settings itself.
sign_in.ask_by(sign_in.find_file(), services.get().settings.sign_in_hours)
# Cookies of sign-in and of uploads stay valid over a restart.
os.environ.setdefault("STREAMLIT_SERVER_COOKIE_SECRET", services.get().signer.derive("streamlit cookies"))
keep_values_out_of_logs()

app = st.App(
    MAIN,
    lifespan=lifespan,
    routes=[Route("/readyz", readyz), Route("/favicon.png", favicon)],
    middleware=[Middleware(Guard)],
    on_script_error=on_script_error,
)
take_variables()  # only now, since the app says where its own config.toml lies, over which they win

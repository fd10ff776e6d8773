"""The installed Streamlit, serving a page in this process; and the same with one of its parts taken away."""

from __future__ import annotations

import builtins
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
import uvicorn
from streamlit import config
from streamlit.runtime import Runtime

from app.streamlit_contact import addresses, insides
from tests.load.visitor import Visitor, get_cookie

PATIENCE = 60  # seconds; a busy machine is slow
ELEMENTS = 20  # that page.py draws
OPTIONS = {"server.fileWatcherType": "none", "server.headless": True, "browser.gatherUsageStats": False}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a server in this process, so that a test sees its sessions and can take parts away from it."""
    main = sys.modules["__main__"]
    before = {name: st.get_option(name) for name in OPTIONS}
    for name, value in OPTIONS.items():
        config.set_option(name, value)
    app = st.App(Path(__file__).with_name("page.py"))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="websockets-sansio"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(PATIENCE)
    Runtime._instance = None
    # A page's script runs as `__main__`; processes that later tests start would run it as theirs.
    sys.modules["__main__"] = main
    for name, value in before.items():
        config.set_option(name, value)


def visitor_of(address: str) -> Visitor:
    """With the token that Streamlit asks of whoever uploads; its page's script gets it with the first health check."""
    return Visitor(address, cookie=get_cookie(address + addresses.HEALTH))


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "It did not happen in time."
        time.sleep(0.01)


@pytest.fixture
def take_away(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes `inside` and `attribute` find no part of this name. Streamlit itself, which needs the part, keeps it."""
    monkeypatch.setattr(insides, "logged", set())
    gone: set[str] = set()

    def found(owner: Any, name: str) -> Any:
        if name in gone:
            raise AttributeError(name)
        return builtins.getattr(owner, name)

    monkeypatch.setattr(insides, "getattr", found, raising=False)
    return gone.add

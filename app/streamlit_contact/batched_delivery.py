"""Many elements, one delivery."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streamlit import runtime
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import get_script_run_ctx


class Turns:
    """A lock that goes to whoever has waited longest; Python's own may let the same few win again and again."""

    def __init__(self) -> None:
        self._lock, self._taken, self._waiting = threading.Lock(), False, deque[threading.Lock]()

    def __enter__(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()

    def __exit__(self, *problem: object) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


_turns = Turns()


@contextmanager
def together() -> Iterator[None]:
    """What is drawn meanwhile leaves when all of it is there, with the word that the run has ended.

    Streamlit wakes the server's loop for each of a hundred elements, and the browser lays out what has come by then; with
    one delivery both do it once. For the last that a page draws, where it is quick to compute: nothing is seen before
    the end, and one page is drawn at a time. Threads that draw at once would only take the interpreter, and Streamlit's
    lock on its settings, from each other.
    """
    context = get_script_run_ctx()
    if context is None:
        yield
        return
    send, waiting = context._enqueue, list[ForwardMsg]()
    context._enqueue = waiting.append
    try:
        with _turns:
            yield
    finally:
        context._enqueue = send
        _deliver(context.session_id, waiting, send)


def _deliver(session_id: str, messages: list[ForwardMsg], send: Callable[[ForwardMsg], None]) -> None:
    """Into the session's queue at once and in silence: what the run says last wakes the server, which sends it all."""
    # A page that is tested without a server has something in its place that knows no sessions.
    sessions = getattr(runtime.get_instance(), "_session_mgr", None) if runtime.exists() else None
    info = sessions.get_session_info(session_id) if sessions is not None else None
    if info is None:
        for message in messages:
            send(message)
        return
    session, run = info.session, getattr(send, "__self__", None)

    def put() -> None:
        if session._scriptrunner is run:  # else somebody else draws for this browser by now
            for message in messages:
                session._browser_queue.enqueue(message)

    session._call_soon_on_event_loop(put)

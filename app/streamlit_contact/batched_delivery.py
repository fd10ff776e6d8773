"""Sends many elements to the browser in one delivery."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from app.streamlit_contact.insides import InsideMissing, attribute, inside


class FairLock:
    """A lock that goes to whoever has waited longest. Python's own may let the same few win again and again."""

    def __init__(self) -> None:
        self._lock, self._taken, self._queue = threading.Lock(), False, deque[threading.Lock]()

    @property
    def waiting(self) -> int:
        """How many threads wait for it."""
        return len(self._queue)

    def __enter__(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._queue.append(mine)
        mine.acquire()

    def __exit__(self, *problem: object) -> None:
        with self._lock:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._taken = False


_one_page_at_a_time = FairLock()


@contextmanager
def batched_delivery() -> Iterator[None]:
    """Buffers the elements that a page draws, and sends them once, when the run ends.

    Streamlit wakes the server's loop for each of a hundred elements, and the browser lays the page out each time. With
    one delivery both do it once. Use it for the last part of a page, where drawing is quick: nothing is seen before the
    end. One page is drawn at a time, because threads that draw at once only take the interpreter, and Streamlit's lock
    on its settings, from each other.
    """
    try:
        run = inside("streamlit.runtime.scriptrunner", "get_script_run_ctx")()
        send = None if run is None else attribute(run, "_enqueue")
    except InsideMissing as missing:
        missing.log("elements are sent one by one")
        send = None
    if send is None:
        yield
        return
    buffered: list[Any] = []
    run._enqueue = buffered.append
    try:
        with _one_page_at_a_time:
            yield
    finally:
        run._enqueue = send
        deliver(run.session_id, buffered, send)


def deliver(session_id: str, messages: list[Any], send: Callable[[Any], None]) -> None:
    """Puts all messages into the session's queue without waking the server: the end of the run does that."""
    try:
        put = _queueing(session_id, messages, send)
    except InsideMissing as missing:
        missing.log("elements are sent one by one")
        put = None
    if put is not None:
        put()
        return
    for message in messages:
        send(message)


def _queueing(session_id: str, messages: list[Any], send: Callable[[Any], None]) -> Callable[[], None] | None:
    """The call that queues the messages; None where no server knows the session, as in `AppTest`."""
    if not inside("streamlit.runtime", "exists")():
        return None
    server = inside("streamlit.runtime", "get_instance")()
    if type(server) is not inside("streamlit.runtime", "Runtime"):  # a stand-in, which knows no sessions
        return None
    info = attribute(attribute(server, "_session_mgr"), "get_session_info")(session_id)
    if info is None:
        return None
    session, script = info.session, getattr(send, "__self__", None)
    queue, later = attribute(session, "_browser_queue"), attribute(session, "_call_soon_on_event_loop")
    attribute(session, "_scriptrunner")

    def enqueue() -> None:
        if session._scriptrunner is script:  # otherwise a newer run draws for this browser by now
            for message in messages:
                queue.enqueue(message)

    return lambda: later(enqueue)

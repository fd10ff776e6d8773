"""Many elements, one delivery."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

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
    """What is drawn meanwhile leaves when all of it is there.

    Streamlit wakes the server's loop for each of a hundred elements, and the browser lays out what has come by then; with
    one delivery both do it once. For what is quick to compute: nothing is seen before the end, and one page is drawn at a
    time. Threads that draw at once would only take the interpreter, and Streamlit's lock on its settings, from each other.
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
        for message in waiting:
            send(message)

"""What closed sessions leave in circles is swept now and then, and the sweeper ends with the server."""

import gc
import threading
import time
import weakref

import pytest

from app.host import sweeping
from app.store import Busy


def refuse() -> None:
    raise Busy("The database is busy.")  # which must not end the sweeper


class Circle:
    def __init__(self) -> None:
        self.own = self


def test_circles_go_without_a_collection_by_anyone_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "SWEEP_EVERY", 0.01)
    gc.disable()
    stop = threading.Event()
    sweeper = threading.Thread(target=sweeping.sweep_now_and_then, args=(stop, refuse))
    try:
        left = weakref.ref(Circle())
        assert left() is not None, "nothing but a sweep frees a circle"
        sweeper.start()
        until = time.monotonic() + 60
        while left() is not None and time.monotonic() < until:
            time.sleep(0.01)
        assert left() is None
    finally:
        gc.enable()
        stop.set()
        sweeper.join(60)
    assert not sweeper.is_alive()

"""Garbage collection for all sessions together."""

from __future__ import annotations

import gc
import threading

COLLECT_EVERY = 20  # seconds


def collect_now_and_then(stop: threading.Event) -> None:
    """What closed sessions leave in circles goes in one sweep for all, not in one after each press."""
    while not stop.wait(COLLECT_EVERY):
        gc.collect()

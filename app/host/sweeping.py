"""Frees memory and tidies the store every few seconds, for all sessions together."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable

from l2m_core.errors import L2MError

SWEEP_EVERY = 20  # seconds

logger = logging.getLogger("l2m.app")


def sweep_now_and_then(stop: threading.Event, *sweeps: Callable[[], None]) -> None:
    """Calls each of the sweeps, and collects garbage once for all sessions instead of after each run of a page."""
    while not stop.wait(SWEEP_EVERY):
        for sweep in sweeps:
            try:
                sweep()
            except L2MError as problem:
                logger.warning("A sweep of the store did not succeed: %s", problem)
        gc.collect()

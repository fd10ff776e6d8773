"""Frees memory every few seconds, for all sessions together."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable

from l2m_core.errors import L2MError

SWEEP_EVERY = 20  # seconds

logger = logging.getLogger("l2m.app")


def sweep_now_and_then(stop: threading.Event, forget_deleted: Callable[[], None]) -> None:
    """Drops what other processes deleted, and collects garbage once for all sessions instead of after each run of a page."""
    while not stop.wait(SWEEP_EVERY):
        try:
            forget_deleted()
        except L2MError as problem:
            logger.warning("Whether cohorts were deleted could not be asked: %s", problem)
        gc.collect()

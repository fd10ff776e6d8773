"""What is let go now and then, for all sessions together."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable

from l2m_core.errors import L2MError

SWEEP_EVERY = 20  # seconds

logger = logging.getLogger("l2m.app")


def sweep_now_and_then(stop: threading.Event, forget_deleted: Callable[[], None]) -> None:
    """What other processes deleted goes from this one's memory too. What closed sessions leave in circles goes in one
    sweep for all, not in one after each press."""
    while not stop.wait(SWEEP_EVERY):
        try:
            forget_deleted()
        except L2MError as problem:
            logger.warning("Whether cohorts were deleted could not be asked: %s", problem)
        gc.collect()

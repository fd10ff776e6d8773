"""Answers to single questions: those that come at once are asked together, and those given lately are kept.

Asking reads the whole memory of the cohort, whether for one patient or for twenty: what several people ask in the same
moment costs little more than what one asks.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import numpy as np

from l2m_core.model.interface import Output

MOST_KEPT = 1024  # answers
MOST_AT_ONCE = 64  # questions; more are somebody's bulk work, which is not kept

Ask = Callable[[np.ndarray], Sequence[Output]]


class Recent:
    """One for each memory; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._answers: OrderedDict[bytes, Future[Output]] = OrderedDict()
        self._waiting: dict[bytes, np.ndarray] = {}

    def __reduce__(self) -> tuple[type[Recent], tuple[()]]:
        """A copy, in another process for one, begins with nothing kept."""
        return Recent, ()

    def answers(self, x: np.ndarray, ask: Ask) -> list[Output]:
        """x: (n, d) float32, NaN where unknown. `ask` is called with the rows whose answers nobody knows yet."""
        rows = {row.tobytes(): row for row in x}
        with self._lock:
            new = [key for key in rows if key not in self._answers]
            for key in new:
                self._answers[key] = Future()
                self._waiting[key] = rows[key]
            for key in rows:
                self._answers.move_to_end(key)
            found = {key: self._answers[key] for key in rows}
        if new:
            self._serve(ask)
        return [found[row.tobytes()].result() for row in x]

    def knows(self, x: np.ndarray) -> bool:
        """Whether `answers` has all of these at hand, or soon will."""
        with self._lock:
            return all(row.tobytes() in self._answers for row in x)

    def _serve(self, ask: Ask) -> None:
        """Asks all that waits. Who comes while somebody asks is served by the next batch, its own or another's."""
        with self._asking:
            with self._lock:
                batch, self._waiting = self._waiting, {}
                asked = {key: self._answers[key] for key in batch}
            if not batch:
                return
            try:
                given = list(zip(asked.values(), ask(np.stack(list(batch.values()))), strict=True))
            except BaseException as failure:
                with self._lock:
                    for key in batch:
                        del self._answers[key]
                for future in asked.values():
                    future.set_exception(failure)
                return
            for future, answer in given:
                future.set_result(answer)
            with self._lock:
                while len(self._answers) > MOST_KEPT and next(iter(self._answers.values())).done():
                    self._answers.popitem(last=False)

"""Batches queries that arrive at the same time, and caches the latest answers.

A query reads the whole memory of the cohort, whether it is about one patient or about twenty: a batch of what several
people ask at the same time costs little more than one query.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import numpy as np

from l2m_core.model.interface import Output

MOST_KEPT = 1024  # answers in the cache, unless said otherwise
MOST_AT_ONCE = 64  # rows of a query that is batched and cached; a larger one is bulk work and goes by itself

Query = Callable[[np.ndarray], Sequence[Output]]


class QueryBatcher:
    """One for each memory; safe to call from any thread. most_kept: answers in the cache."""

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self.most_kept = most_kept
        self._lock = threading.Lock()  # guards the two dictionaries
        self._querying = threading.Lock()  # held by the thread that queries the model
        self._answers: OrderedDict[bytes, Future[Output]] = OrderedDict()  # the least recently used first
        self._waiting: dict[bytes, np.ndarray] = {}

    def __reduce__(self) -> tuple[type[QueryBatcher], tuple[int]]:
        """A copy, for example in another process, begins with an empty cache."""
        return QueryBatcher, (self.most_kept,)

    def __len__(self) -> int:
        """Answers that are in the cache or on their way."""
        return len(self._answers)

    def forget(self) -> None:
        """Drop the answers that are in the cache. Those on their way are still given to whoever waits for them."""
        with self._lock:
            for key in [key for key, answer in self._answers.items() if answer.done()]:
                del self._answers[key]

    @property
    def waiting(self) -> int:
        """Rows of the next batch."""
        return len(self._waiting)

    def answers(self, x: np.ndarray, query: Query) -> list[Output]:
        """x: (n, d) float32, NaN where unknown. `query` is called with the rows that are not in the cache."""
        rows = {row.tobytes(): row for row in x}
        with self._lock:
            # A row that another thread asks about already has its Future here, so it is queried once.
            new = [key for key in rows if key not in self._answers]
            for key in new:
                self._answers[key] = Future()
                self._waiting[key] = rows[key]
            for key in rows:
                self._answers.move_to_end(key)
            found = {key: self._answers[key] for key in rows}
        if new:
            self._run_batch(query)
        return [found[row.tobytes()].result() for row in x]

    def has_answers(self, x: np.ndarray) -> bool:
        """Whether `answers` has all of these rows in the cache, or soon will."""
        with self._lock:
            return all(row.tobytes() in self._answers for row in x)

    def _run_batch(self, query: Query) -> None:
        """Queries all rows that wait. Rows that arrive during a query go into the next batch, whichever thread runs it."""
        with self._querying:
            with self._lock:
                batch, self._waiting = self._waiting, {}
                asked = {key: self._answers[key] for key in batch}
            if not batch:  # another thread's batch took our rows along
                return
            try:
                given = list(zip(asked.values(), query(np.stack(list(batch.values()))), strict=True))
            except BaseException as failure:
                # Failures are not cached: whoever asks next tries again.
                with self._lock:
                    for key in batch:
                        del self._answers[key]
                for future in asked.values():
                    future.set_exception(failure)
                return
            for future, answer in given:
                future.set_result(answer)
            with self._lock:
                # An answer that is still on its way stays: somebody waits for it.
                while len(self._answers) > self.most_kept and next(iter(self._answers.values())).done():
                    self._answers.popitem(last=False)

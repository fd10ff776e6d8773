"""What is computed once: in a bounded cache that threads share, or for as long as an object is there."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Of = TypeVar("Of")
Made = TypeVar("Made")


def once_for_each(make: Callable[[Of], Made]) -> Callable[[Of], Made]:
    """Computes a value once for each object, and forgets it with the object, which is not kept for it."""
    kept: WeakKeyDictionary[Of, Made] = WeakKeyDictionary()

    @wraps(make)
    def made(of: Of) -> Made:
        if of not in kept:
            kept[of] = make(of)
        return kept[of]

    return made


class BoundedCache:
    """Keeps values whose weights sum to at most `budget`; the least recently used is dropped first, the newest never.

    whose: what the value of a key belongs to. With the newest stays what belongs to the same, which it is used with.
    """

    def __init__(
        self,
        budget: float,
        weigh: Callable[[Any], float] = lambda value: 1.0,
        whose: Callable[[Any], Hashable] = lambda key: key,
    ) -> None:
        self._budget = budget
        self._weigh = weigh
        self._whose = whose
        self._lock = threading.Lock()
        self._futures: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._weights: dict[Hashable, float] = {}

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value. Computes it if no thread has, or waits for the thread that does. A failure is raised and not kept."""
        future, is_mine = self._claim(key)
        if is_mine:
            self._compute(key, future, make)
        return future.result()

    def start(self, key: Hashable, make: Callable[[], Any], executor: Executor) -> Future[Any]:
        """As `get`, in the background. Check `.done()` before asking for the result."""
        future, is_mine = self._claim(key)
        if is_mine:
            executor.submit(self._compute, key, future, make)
        return future

    def peek(self, key: Hashable) -> Any | None:
        """The value if it has been computed; None otherwise."""
        with self._lock:
            future = self._futures.get(key)
        done = future is not None and future.done() and future.exception() is None
        return future.result() if done and future is not None else None

    def is_being_made(self, key: Hashable) -> bool:
        """Whether the value is asked for and not there yet."""
        with self._lock:
            future = self._futures.get(key)
        return future is not None and not future.done()

    def drop(self, is_unwanted: Callable[[Any], bool]) -> None:
        """Drops the values under these keys. A thread that waits for one of them still gets it."""
        with self._lock:
            for key in list(filter(is_unwanted, self._futures)):
                del self._futures[key]
                self._weights.pop(key, None)

    def keys(self) -> tuple[Any, ...]:
        with self._lock:
            return tuple(self._futures)

    def __len__(self) -> int:
        with self._lock:
            return len(self._futures)

    def _claim(self, key: Hashable) -> tuple[Future[Any], bool]:
        with self._lock:
            known = self._futures.get(key)
            if known is not None:
                self._futures.move_to_end(key)
                return known, False
            fresh: Future[Any] = Future()
            self._futures[key] = fresh
            return fresh, True

    def _compute(self, key: Hashable, future: Future[Any], make: Callable[[], Any]) -> None:
        try:
            value = make()
        except BaseException as failure:
            with self._lock:
                if self._futures.get(key) is future:
                    del self._futures[key]
            future.set_exception(failure)
            return
        with self._lock:
            if self._futures.get(key) is future:
                self._weights[key] = self._weigh(value)
                self._drop_least_used(newest=key)
        future.set_result(value)

    def _drop_least_used(self, newest: Hashable) -> None:
        total = sum(self._weights.values())
        for key in list(self._futures):
            if total <= self._budget:
                return
            if key in self._weights and self._whose(key) != self._whose(newest):
                total -= self._weights.pop(key)
                del self._futures[key]

"""A property that is computed when it is first read, and cached on the instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """Like `functools.cached_property`, but threads do not wait for each other.

    Up to Python 3.11 `cached_property` holds one lock for all instances: while one session computes an answer, the same
    property of every other patient would wait. Without the lock, two threads that read one property at once may both
    compute it; both get the value that was cached first.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        # Not a data descriptor: from now on the instance's own entry is found first.
        return instance.__dict__.setdefault(self.name, self.compute(instance))

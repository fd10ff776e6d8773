"""The bounded cache: one computation for each key, the least used dropped first."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.cache import BoundedCache
from tests.app.conftest import PATIENCE


def test_a_value_is_computed_once_however_many_ask_at_once() -> None:
    cache, calls, gate = BoundedCache(10), [], threading.Event()

    def make() -> int:
        calls.append(1)
        gate.wait(PATIENCE)
        return 7

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(cache.get, "a", make) for _ in range(8)]
        gate.set()
        assert [future.result() for future in futures] == [7] * 8
    assert len(calls) == 1


def test_the_least_used_is_dropped_first() -> None:
    cache = BoundedCache(2)
    for key in ("a", "b"):
        cache.get(key, lambda key=key: key)
    cache.get("a", lambda: "again")
    cache.get("c", lambda: "c")
    assert cache.peek("a") == "a" and cache.peek("b") is None and cache.peek("c") == "c"


def test_weights_count_and_the_newest_stays_whatever_it_weighs() -> None:
    cache = BoundedCache(10, weigh=len)
    cache.get("small", lambda: "123")
    cache.get("large", lambda: "x" * 50)
    assert cache.peek("large") is not None and cache.peek("small") is None
    assert len(cache) == 1


def test_what_belongs_to_the_same_as_the_newest_stays_with_it() -> None:
    cache = BoundedCache(10, weigh=len, whose=lambda key: key[0])
    for key in ("other", "own", "own samples"):
        cache.get((key.split()[0], key), lambda: "x" * 8)
    assert cache.keys() == (("own", "own"), ("own", "own samples"))
    cache.get(("other", "other"), lambda: "x" * 8)
    assert cache.keys() == (("other", "other"),)


def test_a_failure_is_raised_and_not_kept() -> None:
    cache = BoundedCache(2)
    with pytest.raises(ValueError, match="no"):
        cache.get("a", lambda: (_ for _ in ()).throw(ValueError("no")))
    assert cache.get("a", lambda: 3) == 3


def test_the_background_fills_it() -> None:
    cache = BoundedCache(2)
    with ThreadPoolExecutor(1) as pool:
        future = cache.start("a", lambda: 5, pool)
        assert cache.start("a", lambda: 6, pool) is future
        assert future.result(PATIENCE) == 5
    assert cache.peek("a") == 5


def test_what_is_dropped_is_made_anew_and_weighs_nothing() -> None:
    cache = BoundedCache(2)
    for key in ("a", "b"):
        cache.get(key, lambda key=key: key)
    cache.drop(lambda key: key == "a")
    assert cache.keys() == ("b",) and cache.get("a", lambda: "again") == "again"
    assert cache.peek("b") == "b", "there was room for both"

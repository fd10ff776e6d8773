"""Who draws: one at a time, in the order of their coming."""

from __future__ import annotations

import threading
import time

import pytest

from app.ui.together import Turns, together


def test_turns_are_taken_one_at_a_time_in_order() -> None:
    turns, order, inside = Turns(), list[int](), list[int]()

    def draw(number: int) -> None:
        with turns:
            inside.append(number)
            assert len(inside) == 1
            order.append(number)
            time.sleep(0.005)
            inside.remove(number)

    threads = []
    with turns:
        for number in range(8):
            threads.append(threading.Thread(target=draw, args=(number,)))
            threads[-1].start()
            while len(turns._waiting) <= number:
                time.sleep(0.001)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_who_fails_gives_the_turn_back() -> None:
    turns = Turns()
    with pytest.raises(ValueError), turns:
        raise ValueError
    with turns:
        pass


def test_without_a_page_nothing_is_held_back() -> None:
    with together():
        pass

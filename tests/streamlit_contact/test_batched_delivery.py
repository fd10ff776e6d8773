"""Who draws: one at a time, in the order of their coming."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from app.streamlit_contact import batched_delivery as together_module
from app.streamlit_contact.batched_delivery import Turns, together


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


class Run:
    """Stands for Streamlit's session and the run of a page in it."""

    def __init__(self) -> None:
        self.queue: list[ForwardMsg] = []
        self.sent: list[ForwardMsg] = []
        self.session = SimpleNamespace(
            _scriptrunner=self,
            _browser_queue=SimpleNamespace(enqueue=self.queue.append),
            _call_soon_on_event_loop=self.later,
        )
        self.calls: list[Callable[[], None]] = []

    def later(self, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def send(self, message: ForwardMsg) -> None:
        self.sent.append(message)

    def serve(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sessions = {"mine": SimpleNamespace(session=self.session)}
        server = SimpleNamespace(_session_mgr=SimpleNamespace(get_session_info=sessions.get))
        monkeypatch.setattr(together_module.runtime, "exists", lambda: True)
        monkeypatch.setattr(together_module.runtime, "get_instance", lambda: server)


MESSAGES = [ForwardMsg(hash=str(number)) for number in range(3)]


def test_a_page_is_one_delivery_into_its_own_sessions_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    run.serve(monkeypatch)
    together_module._deliver("mine", MESSAGES, run.send)
    assert (run.queue, run.sent, len(run.calls)) == ([], [], 1)
    run.calls[0]()
    assert run.queue == MESSAGES and run.sent == []


def test_a_run_that_another_has_followed_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    run.serve(monkeypatch)
    together_module._deliver("mine", MESSAGES, run.send)
    run.session._scriptrunner = Run()
    run.calls[0]()
    assert run.queue == []


def test_where_there_is_no_such_session_messages_go_their_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    run.serve(monkeypatch)
    together_module._deliver("other", MESSAGES, run.send)
    assert run.sent == MESSAGES and run.calls == []

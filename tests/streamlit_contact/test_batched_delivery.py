"""Who draws: one at a time, in the order of their coming; and where a run's messages go."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession

from app.streamlit_contact.batched_delivery import FairLock, batched_delivery, deliver
from tests.load.visitor import Visitor
from tests.streamlit_contact.conftest import visitor_of, wait_until


def test_turns_are_taken_one_at_a_time_in_order() -> None:
    lock, order, inside = FairLock(), list[int](), list[int]()

    def draw(number: int) -> None:
        with lock:
            inside.append(number)
            assert len(inside) == 1
            order.append(number)
            time.sleep(0.005)
            inside.remove(number)

    threads = []
    with lock:
        for number in range(8):
            threads.append(threading.Thread(target=draw, args=(number,)))
            threads[-1].start()
            while lock.waiting <= number:
                time.sleep(0.001)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_who_fails_gives_the_turn_back() -> None:
    lock = FairLock()
    with pytest.raises(ValueError), lock:
        raise ValueError
    with lock:
        pass


def test_without_a_page_nothing_is_held_back() -> None:
    with batched_delivery():
        pass


MESSAGES = [ForwardMsg(hash=str(number)) for number in range(3)]


class Run:
    """A run of a page's script, which would send its messages one by one."""

    def __init__(self) -> None:
        self.sent: list[ForwardMsg] = []

    def send(self, message: ForwardMsg) -> None:
        self.sent.append(message)


def delivered(address: str, is_current: bool) -> tuple[list[ForwardMsg], list[ForwardMsg]]:
    """What a run's delivery leaves in the queue of a real session, and what it sent one by one."""
    run = Run()

    async def act() -> list[ForwardMsg]:
        async with visitor_of(address) as visitor:
            session = session_of(visitor)
            wait_until(lambda: session._scriptrunner is None)  # the run of the page itself has ended
            session._scriptrunner = run if is_current else Run()  # type: ignore[assignment]
            try:
                deliver(session.id, MESSAGES, run.send)
                done = threading.Event()
                session._call_soon_on_event_loop(done.set)
                assert done.wait(10)
                return [message for message in session._browser_queue.flush() if message.hash]
            finally:
                session._scriptrunner = None
                session._browser_queue.clear()

    return asyncio.run(act()), run.sent


def session_of(visitor: Visitor) -> AppSession:
    info = Runtime.instance()._session_mgr.get_session_info(visitor.session)
    assert info is not None and isinstance(info.session, AppSession)
    return info.session


def test_a_page_is_one_delivery_into_its_own_sessions_queue(address: str) -> None:
    assert delivered(address, is_current=True) == (MESSAGES, [])


def test_a_run_that_another_has_followed_draws_nothing(address: str) -> None:
    assert delivered(address, is_current=False) == ([], [])


def test_where_there_is_no_such_session_messages_go_their_usual_way(address: str) -> None:
    run = Run()
    deliver("other", MESSAGES, run.send)
    assert run.sent == MESSAGES


def test_where_the_server_is_a_stand_in_messages_go_their_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runtime, "_instance", SimpleNamespace())
    run = Run()
    deliver("any", MESSAGES, run.send)
    assert run.sent == MESSAGES

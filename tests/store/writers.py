"""What other processes do in the tests. They start from a clean server process: nothing of the test's is inherited."""

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess

from app.store import Busy, Conflict, Store
from tests.store.harness import OWNER, new_uuid

PROCESSES: ForkServerContext = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.store.writers"])


def start(target, *arguments: object) -> tuple[BaseProcess, Connection]:  # type: ignore[no-untyped-def]
    """Run `target(*arguments, pipe)` in a process of its own; returns it and our end of the pipe."""
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=target, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def kill(process: BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def received(pipe: Connection) -> list:
    """Everything that was sent before the other end closed, by ending or by being killed."""
    messages = []
    while True:
        try:
            messages.append(pipe.recv())
        except EOFError:
            return messages


def write_until_killed(url: str, step_through_id: str, pipe: Connection) -> None:
    """Append event after event; say so after each, never before."""
    store = Store(url)
    length = store.step_throughs.get(OWNER, step_through_id).length
    while True:
        event_id, payload = new_uuid(), {"value": length, "text": "x" * (length * 37 % 5000)}
        stored = store.step_throughs.append_event(OWNER, step_through_id, event_id, length, "observe", payload)
        pipe.send((stored.sequence, event_id, len(payload["text"])))
        length += 1


def write_together(url: str, step_through_id: str, number: int, pipe: Connection) -> None:
    """Append `number` events to a step-through that others append to as well, trying again after each conflict."""
    store, length, draw = Store(url), 0, random.Random(os.getpid())
    for _ in range(number):
        event_id, stored = new_uuid(), None
        while stored is None:
            try:
                stored = store.step_throughs.append_event(
                    OWNER, step_through_id, event_id, length, "observe", {"by": os.getpid()}
                )
            except Conflict as conflict:
                assert conflict.current_length is not None
                length = conflict.current_length
                time.sleep(draw.uniform(0, 0.02))
            except Busy:  # on an overloaded machine; sending again is always safe
                pass
        length += 1
        pipe.send(event_id)
    store.close()


def submit_once_all_together(url: str, step_through_id: str, event_id: str, pipe: Connection) -> None:
    store = Store(url)
    stored = store.step_throughs.append_event(OWNER, step_through_id, event_id, 0, "observe", {"value": 1})
    pipe.send(stored.hash)
    store.close()


def migrate_and_begin(url: str, pipe: Connection) -> None:
    store = Store(url, migrate=True)
    pipe.send(len(store.step_throughs.list(OWNER)))
    store.close()


def claim_and_hang(url: str, job_id: str, pipe: Connection) -> None:
    job = Store(url).jobs.claim(job_id)
    pipe.send(job is not None)
    signal.pause()

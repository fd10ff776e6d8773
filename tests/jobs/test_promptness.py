"""How soon a job is in the state that it should be in, and that nothing of it goes on running. A figure, in the long run."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from app.host.services import Services
from app.jobs import trainer, training_job
from app.jobs.runner import LOOK_EVERY, Runner
from app.store import processes
from tests.figures import Keep
from tests.jobs.conftest import LONG, OWNER, ask, ended, wait_until
from tests.jobs.test_training import begin, with_steps

SOON = 10  # seconds


def test_a_dead_worker_is_looked_for_often_enough_without_a_page_open() -> None:
    assert 2 * LOOK_EVERY <= SOON


@pytest.mark.reliability
def test_a_stopped_evidence_job_ends_soon(runner: Runner, long_ward, figure: Keep) -> None:
    job = ask(runner, long_ward, {**LONG, "most_rows": 200, "council": True, "conventional": True})
    wait_until(lambda: runner.store.jobs.get(OWNER, job.id).progress > 0)
    began = time.monotonic()
    runner.stop(OWNER, job.id)
    state, took = ended(runner, job).state, time.monotonic() - began
    figure(
        "jobs: evidence, from 'stop' to stopped",
        "'cancelled' within 10 s",
        f"'{state}' after {took:.1f} s",
        state == "cancelled" and took <= SOON,
    )
    assert state == "cancelled"
    assert took <= SOON


@pytest.mark.reliability
def test_a_stopped_training_job_ends_soon_with_a_checkpoint(services: Services, runner: Runner, figure: Keep) -> None:
    job = begin(services, text=with_steps(100_000))
    run = runner.folder(job) / training_job.RUN
    wait_until(lambda: training_job.last_step(run) >= 3)
    child = (runner.folder(job) / trainer.PROCESS).read_text()
    began = time.monotonic()
    runner.stop(OWNER, job.id)
    state, took = ended(runner, job).state, time.monotonic() - began
    right = state == "cancelled" and training_job.has_checkpoint(run) and not processes.is_alive(child)
    figure(
        "jobs: training, from 'stop' to stopped",
        "'cancelled' within 10 s, a checkpoint, no orphan",
        f"'{state}' after {took:.1f} s, {'a checkpoint, no orphan' if right else 'not as it should be'}",
        right and took <= SOON,
    )
    assert right
    assert took <= SOON


@pytest.mark.reliability
def test_a_killed_worker_is_noticed_soon_and_leaves_no_orphan(services: Services, runner: Runner, figure: Keep) -> None:
    job = begin(services, text=with_steps(100_000))
    wait_until(lambda: training_job.last_step(runner.folder(job) / training_job.RUN) >= 2)
    child = (runner.folder(job) / trainer.PROCESS).read_text()
    stop = threading.Event()
    keeper = threading.Thread(target=runner.keep_moving, args=(stop,))
    keeper.start()
    assert job.pid is not None
    began = time.monotonic()
    os.kill(job.pid, signal.SIGKILL)
    state = ended(runner, job).state
    wait_until(lambda: processes.is_alive(child) is False)
    took = time.monotonic() - began
    stop.set()
    keeper.join()
    figure(
        "jobs: training, from kill -9 of its worker to 'crashed' and no orphan, no page open",
        "within 10 s",
        f"'{state}', trainer gone, after {took:.1f} s",
        state == "crashed" and took <= SOON,
    )
    assert state == "crashed"
    assert took <= SOON

"""Jobs: claimed by one worker, watched by heartbeat, cancelled, found dead, run again."""

import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from app.store import Conflict, Job, NotFound, Store, StoreInputError, processes
from tests.store.harness import OWNER, STRANGER
from tests.store.writers import claim_and_hang, kill, start


def begin_job(store: Store) -> tuple[Job, str]:
    job = store.jobs.add(OWNER, "evidence", {"folds": 5}, log_path="jobs/log.txt")
    running = store.jobs.claim(job.id)
    assert running is not None and running.claim is not None
    return running, running.claim


def test_a_job_goes_from_queued_to_done(store: Store) -> None:
    queued = store.jobs.add(OWNER, "evidence", {"folds": 5})
    assert (queued.state, queued.active, queued.progress, queued.config) == ("queued", True, 0.0, {"folds": 5})
    running = store.jobs.claim(queued.id, pid=None)
    assert running is not None and running.claim is not None and running.pid is not None
    beaten = store.jobs.heartbeat(queued.id, running.claim, progress=0.5, message="fold 3 of 5")
    assert (beaten.state, beaten.progress, beaten.message) == ("running", 0.5, "fold 3 of 5")
    done = store.jobs.finish(queued.id, running.claim, "done", result={"auroc": 0.7})
    assert (done.state, done.progress, done.result, done.active) == ("done", 1.0, {"auroc": 0.7}, False)
    assert store.jobs.get(OWNER, queued.id) == done


def test_a_job_is_claimed_by_one_worker_only(store: Store) -> None:
    job = store.jobs.add(OWNER, "evidence", {})
    claims: list[Job | None] = []
    threads = [threading.Thread(target=lambda: claims.append(store.jobs.claim(job.id))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(claim is not None for claim in claims) == 1


def test_cancelling_ends_a_queued_job_and_tells_a_running_one(store: Store) -> None:
    queued = store.jobs.add(OWNER, "evidence", {})
    assert store.jobs.request_cancel(OWNER, queued.id).state == "cancelled"
    assert store.jobs.claim(queued.id) is None
    running, claim = begin_job(store)
    assert store.jobs.request_cancel(OWNER, running.id).state == "running"
    assert store.jobs.heartbeat(running.id, claim).cancel_requested
    assert store.jobs.finish(running.id, claim, "cancelled").state == "cancelled"


def test_a_killed_worker_is_found_at_once(store: Store, url: str) -> None:
    job = store.jobs.add(OWNER, "train", {})
    process, pipe = start(claim_and_hang, url, job.id)
    assert pipe.recv() is True
    assert store.jobs.sweep() == ()
    kill(process)
    (crashed,) = store.jobs.sweep()
    assert (crashed.id, crashed.state) == (job.id, "crashed")
    assert store.jobs.get(OWNER, job.id).finished_at is not None


def test_a_dead_process_that_nobody_collected_counts_as_dead(store: Store) -> None:
    worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    job = store.jobs.add(OWNER, "train", {})
    store.jobs.claim(job.id, pid=worker.pid)
    assert store.jobs.sweep() == ()
    worker.kill()
    while processes.is_alive(processes.identity(worker.pid)):  # a moment until the system has ended it
        pass
    assert [crashed.id for crashed in store.jobs.sweep()] == [job.id]
    worker.communicate()


def test_a_process_id_given_out_again_is_not_the_worker(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    host, boot, pid, ticks = processes.identity(threading.get_native_id()).split(processes.SEPARATOR)
    earlier = processes.SEPARATOR.join((host, boot, pid, str(int(ticks) - 1)))
    before_reboot = processes.SEPARATOR.join((host, "another-boot", pid, ticks))
    assert processes.is_alive(processes.SEPARATOR.join((host, boot, pid, ticks))) is True
    assert processes.is_alive(earlier) is False
    assert processes.is_alive(before_reboot) is False
    assert processes.is_alive("elsewhere|boot|1|1") is None


def test_a_worker_elsewhere_is_judged_by_its_heartbeats(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "identity", lambda pid: "elsewhere|boot|1|1")
    job, claim = begin_job(store)
    assert store.jobs.sweep(seconds_without_heartbeat=60) == ()
    assert [crashed.id for crashed in store.jobs.sweep(seconds_without_heartbeat=-1)] == [job.id]


def test_a_silent_process_that_still_runs_here_is_left_alone(store: Store) -> None:
    begin_job(store)
    assert store.jobs.sweep(seconds_without_heartbeat=-1) == ()


def test_a_job_that_no_worker_takes_is_given_up(store: Store) -> None:
    job = store.jobs.add(OWNER, "train", {})
    assert store.jobs.sweep(seconds_to_start=60) == ()
    assert [crashed.id for crashed in store.jobs.sweep(seconds_to_start=-1)] == [job.id]
    assert store.jobs.claim(job.id) is None


def test_a_worker_given_up_for_dead_cannot_write_any_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    job, claim = begin_job(store)
    monkeypatch.setattr(processes, "is_alive", lambda process: False)
    store.jobs.sweep()
    store.jobs.requeue(OWNER, job.id)
    second = store.jobs.claim(job.id)
    assert second is not None and second.attempts == 2
    for attempt in (lambda: store.jobs.heartbeat(job.id, claim), lambda: store.jobs.finish(job.id, claim, "done")):
        with pytest.raises(Conflict, match="Stop working"):
            attempt()


def test_a_job_that_ended_can_be_queued_again_with_a_new_log(store: Store) -> None:
    job, claim = begin_job(store)
    with pytest.raises(Conflict):
        store.jobs.requeue(OWNER, job.id)
    store.jobs.finish(job.id, claim, "failed", message="disk full")
    again = store.jobs.requeue(OWNER, job.id)
    assert (again.state, again.message, again.result, again.cancel_requested) == ("queued", "", None, False)
    assert again.created_at == job.created_at
    assert store.jobs.sweep(seconds_to_start=60) == (), "the time to start counts from the last time it was queued"
    assert store.jobs.set_log_path(OWNER, job.id, "jobs/second.txt").log_path == "jobs/second.txt"


def test_jobs_belong_to_their_owner(store: Store) -> None:
    job, _ = begin_job(store)
    assert store.jobs.list(STRANGER) == ()
    for attempt in (store.jobs.get, store.jobs.request_cancel, store.jobs.requeue):
        with pytest.raises(NotFound):
            attempt(STRANGER, job.id)
    assert store.jobs.list(OWNER, kind="train") == ()
    assert [found.id for found in store.jobs.list(OWNER, kind="evidence")] == [job.id]


def test_progress_and_states_out_of_range_are_refused(store: Store) -> None:
    job, claim = begin_job(store)
    with pytest.raises(StoreInputError, match="between 0 and 1"):
        store.jobs.heartbeat(job.id, claim, progress=float("nan"))
    with pytest.raises(ValueError, match="done, failed or cancelled"):
        store.jobs.finish(job.id, claim, "queued")  # type: ignore[arg-type]


def test_times_are_in_order(store: Store) -> None:
    job, claim = begin_job(store)
    done = store.jobs.finish(job.id, claim, "done")
    assert done.started_at is not None and done.heartbeat_at is not None and done.finished_at is not None
    assert done.created_at <= done.started_at <= done.heartbeat_at <= done.finished_at
    assert done.finished_at - done.created_at < timedelta(minutes=5)

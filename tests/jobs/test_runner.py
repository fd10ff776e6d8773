"""Jobs are processes of their own: they end, are stopped, die, go on, and wait their turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from app.host.services import Services
from app.jobs import folders
from app.jobs.evidence_job import settings_of
from app.jobs.queue_lock import queue_locked
from app.jobs.runner import MOST_WAITING, Runner, worker_environment
from app.settings import AppSettings
from app.store import Conflict, NotFound
from l2m_core.errors import ConfigError
from l2m_core.evidence import Evidence
from tests.jobs.conftest import LONG, OWNER, PATIENCE, SETTINGS, ask, ended, wait_until
from tests.prerequisites import REPOSITORY


def test_evidence_is_gathered_in_another_process_and_stored(services: Services, runner: Runner, ward) -> None:
    job = ask(runner, ward)
    assert job.state == "running" and job.pid not in (None, os.getpid())
    done = ended(runner, job)
    assert (done.state, done.progress) == ("done", 1.0), done.message
    assert "the model's order" in done.message
    settings = {**asdict(settings_of(SETTINGS)), "patients": ""}  # no column tells patients apart
    stored = services.store.evidence.find(OWNER, ward.content_hash, services.model(OWNER).fingerprint, settings)
    assert stored is not None
    found = Evidence.from_data(stored.results)
    assert found is not None and found.asked == 15
    assert not list(runner.folder(job).glob("*.npz"))  # nothing of a patient stays behind


def test_a_worker_goes_on_when_the_process_that_started_it_is_gone(services: Services, runner: Runner, ward) -> None:
    program = (
        "import sys; from app.host.services import Services; from app.settings import AppSettings; "
        "from app.jobs.runner import Runner; s = Services(AppSettings.from_environment()); "
        f"print(Runner(s.store, s.settings).submit({OWNER!r}, 'evidence', "
        f"{{'cohort': {ward.id!r}, 'model': 'general', 'settings': {SETTINGS!r}}}).id)"
    )
    server = subprocess.run(
        [sys.executable, "-c", program],
        env=worker_environment(services.settings),
        cwd=REPOSITORY,
        text=True,
        capture_output=True,
        check=True,
    )
    job = services.store.jobs.get(OWNER, server.stdout.strip())
    assert ended(runner, job).state == "done"


def test_a_running_job_stops_when_asked_and_goes_on_with_what_it_had(runner: Runner, long_ward) -> None:
    job = ask(runner, long_ward, LONG)
    wait_until(lambda: bool(list(runner.folder(job).glob("fold-*.npz"))))
    assert runner.stop(OWNER, job.id).state == "running"
    stopped = ended(runner, job)
    assert stopped.state == "cancelled" and "can be resumed" in stopped.message
    kept = {path.name: path.stat().st_mtime_ns for path in runner.folder(job).glob("fold-*.npz")}
    assert kept
    again = runner.resume(OWNER, job.id)
    assert again.active and again.attempts == 2
    wait_until(lambda: runner.store.jobs.get(OWNER, job.id).progress >= 0.24)
    now = {path.name: path.stat().st_mtime_ns for path in runner.folder(job).glob("fold-*.npz")}
    assert kept.items() <= now.items()  # finished folds are not asked again


def test_a_killed_worker_is_noticed_and_its_job_can_be_resumed(runner: Runner, long_ward) -> None:
    job = ask(runner, long_ward, LONG)
    assert job.pid is not None
    os.kill(job.pid, signal.SIGKILL)
    wait_until(lambda: (runner.pump(), runner.store.jobs.get(OWNER, job.id).state == "crashed")[1])
    assert "ended without a word" in runner.store.jobs.get(OWNER, job.id).message
    assert runner.resume(OWNER, job.id).state == "running"


def test_a_signal_from_outside_stops_a_job_as_the_page_does(runner: Runner, long_ward) -> None:
    job = ask(runner, long_ward, LONG)
    wait_until(lambda: runner.store.jobs.get(OWNER, job.id).progress > 0)
    assert job.pid is not None
    os.kill(job.pid, signal.SIGTERM)
    assert ended(runner, job).state == "cancelled"


def test_what_a_job_refuses_is_said_in_its_own_words(services: Services, runner: Runner, ward) -> None:
    failed = ended(runner, ask(runner, ward, {**SETTINGS, "folds": 1}))
    assert (failed.state, failed.message) == ("failed", "folds is 1; it must be a whole number from 2 to 20.")
    services.store.cohorts.delete(OWNER, ward.id)
    gone = ended(runner, ask(runner, ward))
    assert gone.state == "failed" and "deleted" in gone.message


def test_a_fault_of_the_program_is_a_sentence_and_its_values_stay_out_of_the_log(runner: Runner, ward) -> None:
    job = runner.submit(OWNER, "evidence", {"cohort": ward.id, "model": "general", "settings": 7})
    failed = ended(runner, job)
    assert failed.state == "failed" and "Something went wrong in the program (TypeError)" in failed.message
    log = (runner.folder(job) / folders.LOG).read_text()
    assert "Traceback" in log and "not 'int'" not in log and "must be a mapping" not in log
    assert "Traceback" not in folders.tail(runner.folder(job)) and "File " not in folders.tail(runner.folder(job))


def test_jobs_wait_their_turn_and_the_next_one_starts_by_itself(runner: Runner, ward) -> None:
    first, second = ask(runner, ward), ask(runner, ward, {**SETTINGS, "seed": 1})
    assert (first.state, second.state) == ("running", "queued")
    assert runner.jobs_before(second) == 1
    assert ended(runner, first).state == "done"
    assert ended(runner, second).state == "done"  # nobody pumped but the first worker


def test_the_queue_moves_on_when_nobody_looks_at_it(services: Services, runner: Runner, ward) -> None:
    config = {"cohort": ward.id, "model": "general", "settings": {**SETTINGS, "folds": 1}}
    waiting = services.store.jobs.add(OWNER, "evidence", config)
    stop = threading.Event()
    keeper = threading.Thread(target=runner.keep_moving, args=(stop, 0.05))
    keeper.start()
    assert ended(runner, waiting).state == "failed"
    stop.set()
    keeper.join()


def test_a_press_waits_for_its_turn_at_the_queue(services: Services, runner: Runner, ward) -> None:
    with queue_locked(services.settings.jobs_dir, 0.0) as mine:
        assert mine
        waiting = services.store.jobs.add(OWNER, "evidence", {"cohort": ward.id, "model": "general", "settings": 7})
        runner.pump()  # somebody else is at it
        assert services.store.jobs.get(OWNER, waiting.id).state == "queued"
        presser = threading.Thread(target=runner.pump, args=(float(PATIENCE),))
        presser.start()
    presser.join()
    assert services.store.jobs.get(OWNER, waiting.id).state != "queued"


def test_as_many_run_at_once_as_the_installation_allows(services: Services, ward) -> None:
    runner = Runner(services.store, replace(services.settings, jobs_at_once=2))
    states = [ask(runner, ward, {**SETTINGS, "seed": seed}).state for seed in range(3)]
    assert states == ["running", "running", "queued"]


def test_a_waiting_job_is_cancelled_at_once_and_never_runs(runner: Runner, ward, long_ward) -> None:
    ask(runner, long_ward, LONG)
    waiting = ask(runner, ward)
    assert runner.stop(OWNER, waiting.id).state == "cancelled"
    runner.pump()
    assert runner.store.jobs.get(OWNER, waiting.id).state == "cancelled"
    assert not runner.folder(waiting).exists()


def test_a_deleted_cohort_leaves_nothing_of_its_patients_with_its_jobs(runner: Runner, long_ward) -> None:
    job = ask(runner, long_ward, LONG)
    wait_until(lambda: bool(list(runner.folder(job).glob("fold-*.npz"))))
    runner.store.cohorts.delete(OWNER, long_ward.id)
    runner.forget_cohort(long_ward.id)
    assert ended(runner, job).state in ("cancelled", "failed")
    runner.forget_cohort(long_ward.id)
    assert not list(runner.folder(job).glob("fold-*.npz"))


def test_a_deleted_cohort_leaves_nothing_with_the_jobs_of_others_either(
    services: Services, runner: Runner, ward
) -> None:
    guest = "browser-" + "b" * 32
    services.store.cohorts.share(OWNER, ward.id)
    job = services.store.jobs.add(guest, "train", {"cohort": ward.id})
    about = services.store.jobs.add(guest, "train", {"name": ward.id})  # not of it, though it says its id
    for one in (job, about):
        runner.folder(one).mkdir(parents=True)
        for name in ("cohort.parquet", "schema.yaml", "fold-000-a.npz", "log.txt"):
            (runner.folder(one) / name).touch()
    services.delete_cohort(OWNER, ward.id)
    assert [path.name for path in runner.folder(job).iterdir()] == ["log.txt"]
    assert len(list(runner.folder(about).iterdir())) == 4
    assert services.store.jobs.get(guest, job.id).state == "cancelled"


def test_what_a_killed_trainer_left_of_a_cohort_is_deleted(services: Services, runner: Runner, ward) -> None:
    job = services.store.jobs.add(OWNER, "train", {"cohort": ward.id})
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    services.store.jobs.claim(job.id, pid=gone.pid)
    runner.folder(job).mkdir(parents=True)
    for name in ("cohort.parquet", "schema.yaml", "log.txt"):
        (runner.folder(job) / name).touch()
    runner.pump()
    assert len(list(runner.folder(job).iterdir())) == 3, "it works with them"
    gone.kill()
    gone.wait()
    runner.pump()
    assert services.store.jobs.get(OWNER, job.id).state == "crashed"
    assert [path.name for path in runner.folder(job).iterdir()] == ["log.txt"]


def test_files_of_an_ended_job_can_be_erased_and_of_a_running_one_not(runner: Runner, ward) -> None:
    job = ask(runner, ward)
    with pytest.raises(Conflict, match="Stop it first"):
        runner.erase(OWNER, job.id)
    ended(runner, job)
    runner.erase(OWNER, job.id)
    assert not runner.folder(job).exists() and folders.tail(runner.folder(job)) == ""


def test_nobody_can_fill_the_queue(services: Services, ward) -> None:
    runner = Runner(services.store, replace(services.settings, jobs_at_once=0))
    for _ in range(MOST_WAITING):
        ask(runner, ward)
    with pytest.raises(ConfigError, match=f"already have {MOST_WAITING} jobs that are waiting or running"):
        ask(runner, ward)


def test_another_owner_can_neither_stop_nor_resume_a_job(services: Services, ward) -> None:
    runner = Runner(services.store, replace(services.settings, jobs_at_once=0))
    job = ask(runner, ward)
    for act in (runner.stop, runner.resume):
        with pytest.raises(NotFound):
            act("browser-" + "b" * 32, job.id)


def test_workers_get_the_threads_that_the_installation_grants_and_no_secrets_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMLIT_SERVER_COOKIE_SECRET", "s")
    environment = worker_environment(AppSettings(tmp_path, "sqlite:///x", job_threads=3))
    assert environment["OMP_NUM_THREADS"] == "3" and environment["L2M_DATABASE_URL"] == "sqlite:///x"
    assert not [name for name in environment if name.startswith("STREAMLIT_")]


def test_a_worker_computes_where_the_app_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("L2M_DEVICE", "cpu")
    assert AppSettings.from_environment({"L2M_DEVICE": "cuda:1"}).device == "cuda:1"
    assert AppSettings.from_environment({}).device == "auto"
    assert worker_environment(AppSettings(tmp_path, "sqlite:///x", device="cuda:1"))["L2M_DEVICE"] == "cuda:1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("L2M_JOBS", "none"),
        ("L2M_JOBS", "0"),
        ("L2M_JOB_THREADS", "-1"),
        ("L2M_TRAINING", "maybe"),
        ("L2M_DEVICE", "abacus"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        AppSettings.from_environment({name: value})
    assert AppSettings.from_environment({"L2M_JOBS": "3", "L2M_TRAINING": "Signed-in"}).training == "signed-in"

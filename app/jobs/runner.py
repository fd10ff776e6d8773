"""The queue of background jobs: starts those that wait, and notices workers that died.

Any process of the app may look at the queue at any time; a lock on a file lets one do so at a time.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.jobs import folders
from app.jobs.queue_lock import queue_locked
from app.settings import AppSettings
from app.store import Conflict, Job, Store
from l2m_core.answering.devices import VARIABLE
from l2m_core.errors import ConfigError, L2MError
from l2m_core.plugins import OFFERED, SWITCH

logger = logging.getLogger("l2m.jobs")

PATIENCE = 10.0  # seconds that a press, or a worker at its end, waits for the lock on the queue
LOOK_EVERY = 4.0  # seconds between looks at the queue; a dead worker is noticed within twice as many
MOST_WAITING = 10  # jobs of one owner that wait or run
FOR_EVERYONE = ("evidence",)  # kinds of jobs that any installation runs; the others are training
FOREVER = 10.0**9  # seconds: a job that waits for its turn is not lost
_HOME = Path(__file__).resolve().parents[2]


class Runner:
    """The queue of one installation."""

    def __init__(self, store: Store, settings: AppSettings) -> None:
        self.store, self.settings = store, settings
        self._children: list[subprocess.Popen[bytes]] = []

    def folder(self, job: Job) -> Path:
        return folders.folder_of(self.settings.jobs_dir, job.id)

    def may_train(self, owner: str) -> bool:
        """Whether this installation lets this owner start training jobs."""
        signed_in = owner.startswith("user-")
        return self.settings.training == "everyone" or (self.settings.training == "signed-in" and signed_in)

    def submit(self, owner: str, kind: str, config: Mapping[str, Any]) -> Job:
        """Queues a job, and starts it if it is first."""
        self._check_right(owner, kind)
        unfinished = sum(job.active for job in self.store.jobs.list(owner))
        if unfinished >= MOST_WAITING:
            raise ConfigError(
                f"You already have {unfinished} jobs that are waiting or running; more than {MOST_WAITING} are not taken. "
                "Let some finish, or stop them."
            )
        job = self.store.jobs.add(owner, kind, dict(config))
        self.store.jobs.set_log_path(owner, job.id, f"{job.id}/{folders.LOG}")
        self.pump(PATIENCE)
        return self.store.jobs.get(owner, job.id)

    def stop(self, owner: str, job_id: str) -> Job:
        """End a waiting job; a running one learns it within seconds, keeps what it has, and ends."""
        job = self.store.jobs.request_cancel(owner, job_id)
        self.pump()
        return job

    def resume(self, owner: str, job_id: str) -> Job:
        """Let a job that was stopped, failed or died go on where its files say that it stopped."""
        self._check_right(owner, self.store.jobs.get(owner, job_id).kind)
        self.store.jobs.requeue(owner, job_id)
        self.pump(PATIENCE)
        return self.store.jobs.get(owner, job_id)

    def erase(self, owner: str, job_id: str) -> None:
        """Delete the files of a job that ended: log, checkpoints, results. Models made of it stay."""
        job = self.store.jobs.get(owner, job_id)
        if job.active:
            raise Conflict("This job waits or runs. Stop it first.")
        shutil.rmtree(self.folder(job), ignore_errors=True)

    def forget_cohort(self, cohort_id: str) -> None:
        """Stop what works with a cohort that is deleted, whosever it is, and delete what jobs kept of its patients."""
        for job in self.store.jobs.of_cohort(cohort_id):
            if job.active:
                self.store.jobs.request_cancel(job.owner, job.id)
            folders.delete(self.folder(job), folders.OF_PATIENTS)

    def pump(self, patience: float = 0.0) -> None:
        """Notices workers that died, and starts waiting jobs as far as there is room.

        patience: seconds to wait for another process that is doing the same. Who looks again soon need not wait.
        """
        self._children = [child for child in self._children if child.poll() is None]  # polling reaps those that ended
        with queue_locked(self.settings.jobs_dir, patience) as mine:
            if not mine:
                return
            for crashed in self.store.jobs.sweep(seconds_to_start=FOREVER):
                folders.delete(self.folder(crashed), folders.WHILE_IT_RUNS)
            active = self.store.jobs.active()
            room = self.settings.jobs_at_once - sum(job.state == "running" for job in active)
            for job in [job for job in active if job.state == "queued"][: max(0, room)]:
                self._start(job)

    def keep_moving(self, stop: threading.Event, seconds: float = LOOK_EVERY) -> None:
        """Look at the queue again and again, for when nobody has a page open."""
        while not stop.wait(seconds):
            try:
                self.pump()
            except L2MError as problem:
                logger.warning("The queue of jobs could not be looked at: %s", problem)

    def jobs_before(self, job: Job) -> int:
        """How many jobs come before this one in the queue, those that run included."""
        return next((count for count, other in enumerate(self.store.jobs.active()) if other.id == job.id), 0)

    def _check_right(self, owner: str, kind: str) -> None:
        if kind not in FOR_EVERYONE and not self.may_train(owner):
            raise ConfigError(
                "Training jobs are switched off on this installation, or for those who are not signed in."
            )

    def _start(self, job: Job) -> None:
        """Starts a worker in a process session of its own, so that what ends this process does not end it."""
        folder = self.folder(job)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (folder / folders.LOG).open("ab") as log:
                child = subprocess.Popen(
                    [sys.executable, "-P", "-m", "app.jobs", job.id],
                    cwd=folder,
                    env=worker_environment(self.settings),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    **_detached(),
                )
        except OSError as error:
            self._give_up(job, f"No process could be started for it ({error.strerror}).")
            return
        self._children.append(child)
        claimed = None
        try:
            # Claimed with the child's process id: from here on every process sees whether it lives.
            claimed = self.store.jobs.claim(job.id, pid=child.pid)
        finally:
            _hand_over(child, "" if claimed is None or claimed.claim is None else claimed.claim)

    def _give_up(self, job: Job, sentence: str) -> None:
        claimed = self.store.jobs.claim(job.id)
        if claimed is not None and claimed.claim is not None:
            self.store.jobs.finish(job.id, claimed.claim, "failed", sentence)


def worker_environment(settings: AppSettings) -> dict[str, str]:
    """The worker's environment variables. The database's address goes here because other users can read a command line; with
    a password that lies in a file, the worker reads that file too."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    path = os.pathsep.join([str(_HOME), *filter(None, [kept.get("PYTHONPATH")])])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(settings.job_threads))
    url = {} if kept.get("L2M_DATABASE_PASSWORD_FILE") else {"L2M_DATABASE_URL": settings.database_url}
    return {
        **kept,
        **threads,
        **url,
        "PYTHONPATH": path,
        "PYTHONUNBUFFERED": "1",
        "L2M_DATA_DIR": str(settings.data_dir),
        VARIABLE: settings.device,
        SWITCH: OFFERED,  # whoever writes settings on a page must not choose code to import
    }


def _detached() -> dict[str, Any]:
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS}
    return {"start_new_session": True}


def _hand_over(child: subprocess.Popen[bytes], claim: str) -> None:
    assert child.stdin is not None
    try:
        with child.stdin as pipe:
            pipe.write(f"{claim}\n".encode())
    except OSError:  # it ended already; the sweep will say so
        pass

"""A store of its own for each test, and real worker processes that are gone when it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from app.host.services import Services
from app.jobs.runner import Runner
from app.settings import AppSettings
from app.store import Job, StoredCohort
from l2m_core.cohort import Cohort

OWNER = "browser-" + "a" * 32
PATIENCE = 240  # seconds; a busy machine is slow
SETTINGS = {"folds": 3, "budget": 2, "most_rows": 15, "draws": 100, "council": False, "conventional": False}


def cohort_of(rows: int = 45, features: int = 4) -> Cohort:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(rows, features))
    return Cohort.from_arrays(x, (x[:, 0] + draw.normal(size=rows) > 0).astype(int), name="ward")


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = Services(AppSettings(tmp_path, f"sqlite:///{tmp_path / 'l2m.sqlite3'}"))
    yield made
    end_jobs(made)
    made.shut_down()
    made.store.close()


def end_jobs_in(data_dir: Path) -> None:
    """The same where the app itself was served from this folder."""
    if (data_dir / "l2m.sqlite3").is_file():
        made = Services(AppSettings(data_dir, f"sqlite:///{data_dir / 'l2m.sqlite3'}"))
        end_jobs(made)
        made.store.close()


def end_jobs(services: Services) -> None:
    """No worker outlives a test: all are asked to stop, and waited for."""
    for job in services.store.jobs.active():
        services.store.jobs.request_cancel(job.owner, job.id)
        if (
            job.pid == os.getpid() and job.claim is not None
        ):  # taken by the test itself; it would hold its place in the queue
            services.store.jobs.finish(job.id, job.claim, "cancelled")
    wait_until(lambda: not services.store.jobs.active(), sweep=services)


@pytest.fixture
def runner(services: Services) -> Runner:
    return Runner(services.store, services.settings)


@pytest.fixture
def ward(services: Services) -> StoredCohort:
    return services.add_cohort(OWNER, cohort_of())


@pytest.fixture
def long_ward(services: Services) -> StoredCohort:
    """Takes long enough to be stopped in the middle."""
    return services.add_cohort(OWNER, cohort_of(400, 12))


LONG = {**SETTINGS, "folds": 4, "budget": 6, "most_rows": 100}


def ask(runner: Runner, cohort: StoredCohort, settings: dict | None = None, owner: str = OWNER) -> Job:
    config = {"cohort": cohort.id, "model": "general", "settings": SETTINGS if settings is None else settings}
    return runner.submit(owner, "evidence", config)


def wait_until(true: Callable[[], bool], sweep: Services | None = None) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if sweep is not None:
            sweep.store.jobs.sweep(seconds_to_start=1e9)
        assert time.monotonic() < deadline, "It did not happen in time."
        time.sleep(0.1)


def ended(runner: Runner, job: Job) -> Job:
    wait_until(lambda: not runner.store.jobs.get(OWNER, job.id).active)
    return runner.store.jobs.get(OWNER, job.id)

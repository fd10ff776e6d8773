"""Before the first visitor: what every page needs is in place, and what people were at is being read again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

import numpy as np

from app.host.services import MEMORY_BYTES, NOBODY, Services
from app.store import StepThrough
from l2m_core.cohort import Cohort
from l2m_core.errors import L2MError
from l2m_core.step_through.patient import Patient

LATEST = 4  # cohorts that are read again, each with the model that was used


def one_step(services: Services, draw: Callable[[Patient], None]) -> None:
    """Answers and draws one step, so that imports, kernels and the database's pages are in memory."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(64, 6))
    cohort = Cohort.from_arrays(x, (x[:, 0] + generator.normal(size=64) > 0).astype(int), name="warm-up")
    patient = services.model(NOBODY).condition(cohort).start({"x0": 1.0}).observe("x1", 0.5)
    draw(patient)
    services.store.cohorts.list(NOBODY)


def read_again(services: Services) -> Future[None]:
    """Has the model read, in the background, the cohorts of the latest step-throughs: after a restart people go on.

    Done once the first of them is read, which is the likeliest to be asked for.
    """
    latest = services.store.step_throughs.latest_of_each_cohort(LATEST)
    return services.background.submit(_read_one_after_another, services, latest, MEMORY_BYTES / 2)


def _read_one_after_another(services: Services, latest: Sequence[StepThrough], room: float) -> None:
    """Each is a task of its own, so that a server that stops meanwhile waits for one at most."""
    if not latest or room <= 0:
        return
    read = _read(services, latest[0])
    services.background.submit(_read_one_after_another, services, latest[1:], room - read)


def _read(services: Services, step_through: StepThrough) -> int:
    """Bytes that its cohort takes now."""
    owner = step_through.owner
    try:
        stored = services.store.cohorts.get(owner, step_through.cohort_id)
        model = services.model_of(owner, step_through.model_fingerprint)
        return 0 if model is None else services.conditioned(owner, stored, model).memory.nbytes
    except L2MError:  # deleted meanwhile, or its model is gone: the page says so to those who open it
        return 0

"""Work done before the first visitor comes: one step is answered and drawn, and the latest cohorts are read again."""

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
    """Conditions models, in the background, on the cohorts of the latest step-throughs, which people go on with.

    The future is done once the first cohort is read, which is the likeliest to be asked for.
    """
    latest = services.store.step_throughs.latest_of_each_cohort(LATEST)
    return services.background.submit(_read_one_after_another, services, latest, MEMORY_BYTES / 2)


def _read_one_after_another(services: Services, latest: Sequence[StepThrough], room: float) -> None:
    """Submits each cohort as a task of its own, so that a server that stops waits for one at most. room: bytes left."""
    if not latest or room <= 0:
        return
    read = _read(services, latest[0])
    services.background.submit(_read_one_after_another, services, latest[1:], room - read)


def _read(services: Services, step_through: StepThrough) -> int:
    """Conditions the model on the step-through's cohort. Returns the bytes that its memory takes."""
    owner = step_through.owner
    try:
        stored = services.store.cohorts.get(owner, step_through.cohort_id)
        model = services.model_of(owner, step_through.model_fingerprint)
        return 0 if model is None else services.conditioned(owner, stored, model).memory.nbytes
    except L2MError:  # deleted meanwhile, or its model is gone: the page says so to those who open it
        return 0

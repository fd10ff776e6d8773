"""One step before the first visitor: imports, kernels and the database's pages are then in place."""

from __future__ import annotations

import numpy as np

from app.ui import charts
from app.ui.services import NOBODY, Services
from l2m_core.cohort import Cohort


def one_step(services: Services) -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(64, 6))
    cohort = Cohort.from_arrays(x, (x[:, 0] + generator.normal(size=64) > 0).astype(int), name="warm-up")
    patient = services.model(NOBODY).condition(cohort).start({"x0": 1.0}).observe("x1", 0.5)
    charts.warm_up(patient)
    services.store.cohorts.list(NOBODY)

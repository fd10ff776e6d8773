"""A cohort with a mechanism that anyone can state, and the released model conditioned on it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m


def make_frame(rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """Death follows lactate, a little age; sodium says nothing. A fifth of the labs were never measured."""
    rng = np.random.default_rng(seed)
    age = rng.normal(60, 12, rows).round()
    lactate = rng.lognormal(0.7, 0.6, rows).round(2)
    sodium = rng.normal(140, 4, rows).round()
    score = 2.5 * (np.log(lactate) - 0.7) / 0.6 + 0.5 * (age - 60) / 12
    died = rng.random(rows) < 1 / (1 + np.exp(-score))
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["F", "M"], rows),
            "lactate": lactate,
            "sodium": sodium,
            "potassium": rng.normal(4, 0.5, rows).round(1),
            "ct": rng.choice(["clear", "shadow", "mass"], rows),
            "died": np.where(died, "yes", "no"),
        }
    )
    for name in ("lactate", "sodium", "potassium", "ct"):
        frame.loc[rng.random(rows) < 0.2, name] = None
    return frame


SCHEMA = """
features:
  - {name: sodium, group: electrolytes, cost: 3}
  - {name: potassium, group: electrolytes, cost: 5}
"""


@pytest.fixture(scope="session")
def model():
    return l2m.load()


@pytest.fixture(scope="session")
def cohort():
    return l2m.Cohort.from_frame(
        make_frame(), outcome="died", baseline=["age", "sex"], costs={"lactate": 12.0, "ct": 200.0}, schema=SCHEMA
    )


@pytest.fixture(scope="session")
def memory(model, cohort):
    return model.condition(cohort)


@pytest.fixture(scope="session")
def continuous_memory(model):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 4)).astype(np.float32)
    y = 10 + 3 * x[:, 0] + rng.normal(size=80).astype(np.float32)
    return model.condition(l2m.Cohort.from_arrays(x, y, kind="continuous"))

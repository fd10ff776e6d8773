"""A small cohort with holes, a panel, costs and a mechanism, and what was gathered on it once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.evidence import EvidenceSettings, gather, make_plan

SETTINGS = EvidenceSettings(folds=2, budget=3, most_rows=24, draws=200)
SCHEMA = """
features:
  - {name: record, role: ignored}
  - {name: sodium, group: salts, cost: 3}
  - {name: potassium, group: salts, cost: 5}
"""


def small_frame(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    lactate = draw.normal(2, 1, rows).round(2)
    frame = pd.DataFrame(
        {
            "record": [f"P{row}" for row in range(rows)],
            "age": draw.normal(60, 12, rows).round(),
            "lactate": lactate,
            "sodium": draw.normal(140, 4, rows).round(),
            "potassium": draw.normal(4, 0.5, rows).round(1),
            "ct": draw.choice(["clear", "shadow"], rows),
            "died": np.where(draw.random(rows) < 1 / (1 + np.exp(-3 * (lactate - 2))), "yes", "no"),
        }
    )
    for name in ("lactate", "sodium", "ct"):
        frame.loc[draw.random(rows) < 0.25, name] = None
    return frame


def small_cohort(**options) -> l2m.Cohort:
    return l2m.Cohort.from_frame(
        small_frame(**options), outcome="died", baseline=["age"], costs={"lactate": 12.0, "ct": 200.0}, schema=SCHEMA
    )


@pytest.fixture(scope="session")
def model():
    return l2m.load()


@pytest.fixture(scope="session")
def cohort():
    return small_cohort()


@pytest.fixture(scope="session")
def plan(cohort):
    return make_plan(cohort, SETTINGS)


@pytest.fixture(scope="session")
def evidence(model, cohort):
    return gather(model, cohort, SETTINGS)

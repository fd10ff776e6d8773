"""Patients and a cohort in files, for the tests of bulk acquisition."""

from pathlib import Path

import numpy as np
import pandas as pd

from train.acquire import AcquireSettings


def table(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(generator.normal(size=(rows, 3)).round(3), columns=["age", "lactate", "sodium"])
    frame["ward"] = generator.choice(["north", "south", "east"], rows)
    frame.loc[::5, "sodium"] = np.nan
    return frame


def written(folder: Path) -> tuple[Path, Path]:
    """A cohort of 60 with outcomes, and 25 patients."""
    cohort = table(60, 0)
    cohort["died"] = (cohort["lactate"] > 0).map({True: "yes", False: "no"})
    cohort.to_csv(folder / "cohort.csv", index=False)
    table(25, 1).to_csv(folder / "patients.csv", index=False)
    return folder / "cohort.csv", folder / "patients.csv"


def context(cohort: Path, model: Path, **settings) -> AcquireSettings:
    given = dict(
        model=str(model),
        cohort=str(cohort),
        outcome="died",
        baseline=("age",),
        schema="",
        policy="gain",
        budget=2,
        least_gain=None,
        threads=1,
    )
    return AcquireSettings(**{**given, **settings})  # type: ignore[arg-type]

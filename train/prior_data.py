"""The data that a prior draws from: a file that the job's settings name, read by the loader that knows its layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.loaders import load_hospital, load_metabric, load_miniboone, load_mnist
from l2m_core.schema import did_you_mean
from train.data_plugins import find_loader, load_with, offered_loaders

LAYOUTS = {
    "table": "a CSV, Parquet or Excel file (of one sheet), with `schema` (a YAML file) or `outcome` (a column's name)",
    "metabric": "Kaggle's METABRIC_RNA_Mutation.csv",
    "miniboone": "UCI's MiniBooNE_PID.txt",
    "hospital": "a MEDS folder of MIMIC-IV, with `outcome`: long_stay, died_in_hospital or readmitted",
    "mnist": "the folder of MNIST's published files, or an .npz with the arrays images and labels",
}
"""Source → what its path leads to."""


@dataclass(frozen=True)
class DataChoice:
    """A file, how to read it, and which of its rows to draw from."""

    source: str = "table"
    """"table", or a data set of the study: "metabric", "miniboone", "hospital" (MIMIC-IV), "mnist"; or the loader of another
    package, by the name that it offers or as `module:object`."""
    path: str = ""
    """The file, or the folder. None of the data sets comes with the software; docs/training.md says where they are from."""
    schema: str = ""
    """Of a table: a YAML file with its schema."""
    outcome: str = ""
    """Of a table without a schema: the outcome's column. Of hospital: which outcome."""
    baseline: tuple[str, ...] = ()
    """Of a table without a schema: columns known from the start."""
    pool: int = 0
    """Rows to draw training tasks from, chosen at random; the others are for tests. 0: all rows."""
    part: str = "train"
    """"train": the rows of the pool; "test": the others."""
    seed: int = 0
    """Of the choice of the pool."""

    def __post_init__(self) -> None:
        if self.source not in LAYOUTS and find_loader(self.source) is None:
            known = [*LAYOUTS, *offered_loaders()]
            raise ConfigError(
                f"prior.data.source is {self.source!r}; choose one of {', '.join(known)}, or give module:object."
                f"{did_you_mean(self.source, known)}"
            )
        if self.part not in ("train", "test"):
            raise ConfigError(f"prior.data.part is {self.part!r}; it must be train or test.")
        if self.pool < 0 or (self.part == "test" and not self.pool):
            raise ConfigError(f"prior.data.pool is {self.pool}; give the number of rows that are for training.")


def absent_data(prior: str) -> str:
    """What to say where a prior needs data and its settings name none."""
    pictures = "digits" in prior
    fitting = {name: text for name, text in LAYOUTS.items() if (name == "mnist") == pictures}
    example = next(iter(fitting)) if pictures else "metabric"
    known = "; ".join(f"{name}: {text}" for name, text in fitting.items())
    return (
        f"The prior {prior!r} draws from data. Name them in the settings: prior.data: {{source: {example}, path: FILE}}. "
        f"Sources are {known}."
    )


def load_prior_data(choice: DataChoice) -> dict[str, Any]:
    """The arrays that the prior takes by keyword."""
    if not choice.path and choice.source in LAYOUTS:
        raise ConfigError(f"prior.data needs a path: {choice.source} is {LAYOUTS[choice.source]}.")
    if choice.source == "mnist":
        arrays = load_mnist(choice.path)
        rows = rows_of(choice, len(arrays["labels"]))
        return {name: values[rows] for name, values in arrays.items()}
    cohort = _load_cohort(choice, Path(choice.path))
    rows = rows_of(choice, len(cohort))
    return {
        "x": cohort.x[rows],
        "y": cohort.y[rows],
        "acquirable": cohort.acquirable,
        "categorical": cohort.categorical,
        "n_classes": cohort.n_classes or None,
    }


def _load_cohort(choice: DataChoice, path: Path) -> Cohort:
    if choice.source == "metabric":
        return load_metabric(path)
    if choice.source == "miniboone":
        return load_miniboone(path)
    if choice.source == "hospital":
        return load_hospital(path, choice.outcome)
    if choice.source not in LAYOUTS:
        return load_with(choice.source, choice.path)
    if not path.exists():
        raise ConfigError(f"There is no file {path}. prior.data.path must lead to {LAYOUTS['table']}.")
    if not (choice.schema or choice.outcome):
        raise ConfigError(f"prior.data has neither a schema nor an outcome; a table is {LAYOUTS['table']}.")
    return Cohort.from_file(path, choice.outcome or None, baseline=choice.baseline, schema=choice.schema or None)


def rows_of(choice: DataChoice, count: int) -> np.ndarray:
    """Numbers of the chosen part's rows, of a table of `count`."""
    if not choice.pool:
        return np.arange(count)
    if choice.pool >= count:
        raise ConfigError(f"prior.data.pool is {choice.pool:,}, and there are {count:,} rows; leave some for tests.")
    order = np.random.default_rng(choice.seed).permutation(count)
    return np.sort(order[: choice.pool] if choice.part == "train" else order[choice.pool :])

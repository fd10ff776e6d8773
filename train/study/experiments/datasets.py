"""The data sets that experiments name: from a folder the user gives, or a stand-in that the caption owns up to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn import datasets as scikit_learn

from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.lazy import lazy
from l2m_core.loaders import load_hospital, load_metabric, load_miniboone, load_mnist
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.missingness import MECHANISMS
from l2m_core.tasks.registry import build_prior
from train.data_plugins import PluggedSource, find_loader
from train.study.evaluation.manifest import read_manifest
from train.study.experiments.r_tables import r_cohort, r_tables

HOSPITAL = {
    "hospital_long_stay": "long_stay",
    "hospital_death": "died_in_hospital",
    "hospital_readmission": "readmitted",
}

MADE_UP = "made up"
"""The mark of a stand-in."""


@dataclass(frozen=True)
class FoundCohort:
    """A cohort, or its stand-in; `note` says so."""

    load: Callable[[], Cohort]
    note: str = ""
    made_up: bool = False

    @property
    def mark(self) -> str:
        """Another data set has another one."""
        return MADE_UP if self.made_up else self.load().content_hash


@dataclass(frozen=True)
class Digits:
    """images: (M, 28, 28), labels: (M,)"""

    arrays: dict[str, Any]
    note: str = ""

    @lazy
    def mark(self) -> str:
        """Other pictures have another one."""
        parts = (np.ascontiguousarray(self.arrays[name]).tobytes() for name in sorted(self.arrays))
        return MADE_UP if self.note else hashlib.sha256(b"".join(parts)).hexdigest()


@lru_cache(maxsize=32)
def find_cohort(name: str, data: Path) -> FoundCohort:
    """By the names of the study's data sets, else of the folder's manifest, of tables of scikit-learn and of R, of plugins."""
    if name == "metabric":
        return _or_stand_in(name, load_metabric, _first(data, METABRIC_FILES), seed=1, features=11, classes=6)
    if name == "miniboone":
        return _or_stand_in(name, load_miniboone, data / "MiniBooNE_PID.txt", seed=2, features=10, classes=2)
    if name in HOSPITAL:
        return _hospital(name, HOSPITAL[name], data)
    known = {source.name: source for source in read_manifest(data)} if (data / "manifest.yaml").is_file() else {}
    if name in known:
        return FoundCohort(known[name].load)
    if name in BUNDLED:
        return FoundCohort(lambda: bundled_cohort(name))
    if name in r_tables() and (data / r_tables()[name].path).is_file():
        return FoundCohort(lambda: r_cohort(name, data))
    if find_loader(name) is not None:
        return FoundCohort(PluggedSource(name, data).load)
    return _stand_in(name, seed=sum(name.encode()), features=16, classes=2)


BUNDLED = ("breast_cancer", "wine", "diabetes")
"""Tables that scikit-learn brings."""


@lru_cache(maxsize=len(BUNDLED))
def bundled_cohort(name: str) -> Cohort:
    found = getattr(scikit_learn, f"load_{name}")()
    is_number = name == "diabetes"
    return Cohort.from_arrays(
        found.data.astype(np.float32),
        found.target.astype(np.float32) if is_number else found.target,
        names=list(map(str, found.feature_names)),
        kind="continuous" if is_number else None,
        name=name,
    )


METABRIC_FILES = ("METABRIC_RNA_Mutation.csv", "metabric_pam50.csv")
MNIST_PATHS = ("mnist.npz", "mnist", "mnist_6000.npz")
"""An .npz, or a folder with the files as published."""


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    return next((folder / name for name in names if (folder / name).exists()), folder / names[0])


def _hospital(name: str, outcome: str, data: Path) -> FoundCohort:
    """MIMIC-IV in MEDS form where it is; for death, the open MIMIC-III demo is nearer than anything made up."""
    records, demo = data / "mimic_iv_meds", data / "mimic3_demo.csv"
    if records.exists():
        cohort = load_hospital(records, outcome)
        return FoundCohort(lambda: cohort)
    if outcome != "died_in_hospital" or not demo.is_file():
        return _stand_in(name, seed=len(name), features=20, classes=2)
    source = next(source for source in read_manifest(data) if source.name == "mimic3_demo")
    return FoundCohort(
        source.load,
        f"{name}: the MIMIC-III demo (129 admissions, open access) in place of MIMIC-IV, which needs credentials.",
    )


def _or_stand_in(
    name: str, load: Callable[[Path], Cohort], path: Path, seed: int, features: int, classes: int
) -> FoundCohort:
    """A file that is there and cannot be read is an error: a stand-in would pass for what the user put there."""
    if not path.exists():
        return _stand_in(name, seed, features, classes)
    cohort = load(path)
    return FoundCohort(lambda: cohort)


def _stand_in(name: str, seed: int, features: int, classes: int, rows: int = 1500) -> FoundCohort:
    def load() -> Cohort:
        settings = {
            "max_classes": classes,
            "binary_share": 1.0 if classes == 2 else 0.0,
            "missingness": {name: float(name == "none") for name in MECHANISMS} | {"panels": 0.0},
        }
        batch = _draw_with(classes, build_prior("synthetic", settings), seed, rows, features)
        texts = [str(k) for k in range(classes)]
        return Cohort.from_arrays(
            batch.x[0].numpy(),
            batch.y[0].numpy(),
            kind="binary" if len(texts) == 2 else "multiclass",
            acquirable=batch.acquirable[0].numpy(),
            categorical=batch.categorical[0].numpy(),
            classes=texts,
            name=name,
        )

    note = f"{name}: a made-up table of the synthetic prior, because the data set is not here."
    return FoundCohort(lru_cache(maxsize=1)(load), note, made_up=True)


def _draw_with(classes: int, prior: Any, seed: int, rows: int, features: int) -> TaskBatch:
    """The prior says how many classes there are at most; the first task that has all of them."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        batch = prior.sample(generator, 1, rows, features)
        if int(batch.n_classes[0]) == classes:
            return batch


@lru_cache(maxsize=2)
def find_digits(data: Path) -> Digits:
    path = _first(data, MNIST_PATHS)
    if not path.exists():
        return Digits(_drawn_digits(), "digits: drawn segments in place of MNIST, which is not here.")
    return Digits(load_mnist(path))


SEGMENTS = (
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
)
"""Of a seven-segment display: top, upper left, upper right, middle, lower left, lower right, bottom."""


def _drawn_digits(count: int = 8000) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 10, count)
    images = np.zeros((count, 28, 28))
    segments = [
        (slice(4, 7), slice(8, 20)),
        (slice(5, 14), slice(7, 10)),
        (slice(5, 14), slice(18, 21)),
        (slice(13, 16), slice(8, 20)),
        (slice(15, 24), slice(7, 10)),
        (slice(15, 24), slice(18, 21)),
        (slice(22, 25), slice(8, 20)),
    ]
    for number, pixels in enumerate(segments):
        lit = np.array([SEGMENTS[label][number] == "1" for label in labels])
        images[(lit, *pixels)] = 255
    noise = generator.normal(0, 40, images.shape)
    return {"images": np.clip(images + noise, 0, 255).astype(np.uint8), "labels": labels}


def check_data_folder(data: Path) -> None:
    if not data.is_dir():
        raise ConfigError(
            f"There is no folder {data}; give --data FOLDER, or any existing folder to use stand-ins only."
        )

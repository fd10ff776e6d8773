"""A package of somebody else's: a method, a prior and a data set, installed by path."""

from __future__ import annotations

from pathlib import Path

MODULE = '''
from dataclasses import dataclass

import numpy as np
import torch

from l2m_core.cohort import Cohort
from l2m_core.methods.interface import block
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.registry import Entry


class ByShare:
    """The context's shares for everybody; asks in the order of the columns, from the last one."""

    def __init__(self, *, seed: int = 0, smoothing: float = 1.0):
        self.smoothing = smoothing

    def fit(self, cohort):
        counts = np.bincount(cohort.y, minlength=cohort.n_classes) + self.smoothing
        self.shares, self.acquirable = counts / counts.sum(), cohort.acquirable
        return self

    def predict(self, x, a):
        return np.tile(self.shares, (len(x), 1))

    def rank(self, x, a):
        return block(np.tile(np.arange(x.shape[1], dtype=float), (len(x), 1)), a, self.acquirable)


@dataclass(frozen=True)
class SignConfig:
    shift: float = 0.0


class SignPrior:
    def __init__(self, config):
        self.config = config

    def sample(self, generator, tasks, rows, features):
        x = torch.randn((tasks, rows, features), generator=generator)
        every = torch.ones((tasks, features), dtype=torch.bool)
        y = (x[..., 0] > self.config.shift).long()
        return TaskBatch(x, torch.ones_like(x, dtype=torch.bool), y, torch.full((tasks,), 2), every, ~every)


SIGN = Entry(SignConfig, SignPrior)
settings = {"not": "a prior"}


def ward(path):
    random = np.random.default_rng(0)
    x = random.normal(size=(150, 4)).astype(np.float32)
    return Cohort.from_arrays(x, (x[:, 1] > 0).astype(int), name="ward")


def no_method(seed):
    return object()
'''
ENTRY_POINTS = """[l2m.methods]
by_share = ward_tools:ByShare
broken = ward_tools:Gone

[l2m.priors]
sign = ward_tools:SIGN

[l2m.data]
ward = ward_tools:ward
"""


def install(folder: Path) -> Path:
    """The folder, which belongs on the import path."""
    (folder / "ward_tools.py").write_text(MODULE)
    facts = folder / "ward_tools-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: ward-tools\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder

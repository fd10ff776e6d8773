"""Small cohorts with a known mechanism."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Table:
    """The part of a cohort that methods read."""

    x: np.ndarray
    y: np.ndarray
    kind: str
    n_classes: int
    acquirable: np.ndarray
    categorical: np.ndarray
    costs: np.ndarray
    panels: tuple[tuple[int, ...], ...] = ()
    """Columns that one action measures together."""

    @property
    def groups(self) -> np.ndarray:
        first = np.arange(self.x.shape[1])
        for panel in self.panels:
            first[list(panel)] = min(panel)
        return np.unique(first, return_inverse=True)[1]

    def rows(self, index) -> Table:
        return replace(self, x=self.x[index], y=self.y[index])


STRONG, WEAK, BASELINE, LEVELS = 2, 1, 0, 5
"""Columns of ``learnable``: the strongest feature, a weaker one, the baseline one, the category; 3 and 4 are noise."""


def learnable(kind: str, rows: int = 160, missing: float = 0.2, seed: int = 0) -> Table:
    """Six features: baseline, weak, strong, two of noise, a category of four levels that matters a little."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 6))
    x[:, LEVELS] = random.integers(4, size=rows)
    score = 0.5 * x[:, BASELINE] + 1.0 * x[:, WEAK] + 3.0 * x[:, STRONG] + 0.5 * (x[:, LEVELS] == 2)
    if kind == "continuous":
        y, n_classes = (10 + 2 * score + random.normal(size=rows)).astype(np.float32), 0
    else:
        n_classes = 2 if kind == "binary" else 3
        edges = [0.0] if kind == "binary" else [-1.2, 1.2]
        y = np.digitize(score + 0.3 * random.logistic(size=rows), edges).astype(np.int64)
    x[random.random(x.shape) < missing] = np.nan
    return Table(
        x.astype(np.float32),
        y,
        kind,
        n_classes,
        acquirable=np.arange(6) != BASELINE,
        categorical=np.arange(6) == LEVELS,
        costs=np.ones(6, dtype=np.float32),
    )

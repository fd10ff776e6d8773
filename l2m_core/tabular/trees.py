"""Gradient-boosted trees that read missing values, on rows of which parts are hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from l2m_core.tabular.bins import MOST_BINS, Bins
from l2m_core.tabular.partial_models import PartialModel, ResidualSpread, all_classes, gaussian, masked_copies
from l2m_core.tabular.predictions import Prediction, known_cells
from l2m_core.tabular.preparation import Context

MOST_CODES = 200
"""A category with more levels than this is read as a number; the trees take at most 255 levels."""


@dataclass(frozen=True)
class TreeSettings:
    """What cross-validation chooses."""

    depth: int
    """Most splits from root to leaf."""
    rounds: int
    """Trees for each class."""
    rate: float = 0.1
    """Learning rate."""
    copies: int = 5
    """Copies of each row with random parts hidden."""
    penalty: float = 1.0
    """L2 penalty of the leaves."""
    leaf: int = 5
    """Fewest original rows in a leaf."""
    features: float = 0.3
    """Share of the features that each split may choose from."""


class FittedTrees:
    """One boosted ensemble."""

    def __init__(self, context: Context, settings: TreeSettings, random: np.random.Generator):
        self.n_classes, self.n_rows = context.n_classes, len(context.y)
        # The trees refuse a column without any value.
        self.used = context.r.any(0)
        codes = np.where(context.r, context.x, 0).max(0)
        self.categorical = (context.categorical & (codes < MOST_CODES))[self.used]
        rows = masked_copies(context, settings.copies, random)
        hidden = self._hidden(rows.x, rows.a)
        self.bins = Bins(hidden, rows.weight, self.categorical)
        inputs = self.bins.of(hidden)
        choices = dict(
            learning_rate=settings.rate,
            max_iter=settings.rounds,
            max_depth=settings.depth,
            # A leaf counts copies of a row, so it needs that many more of them to hold `leaf` different rows.
            min_samples_leaf=settings.leaf * (settings.copies + 1),
            l2_regularization=settings.penalty,
            max_features=settings.features,
            max_bins=MOST_BINS,
            early_stopping=False,
            categorical_features=self.categorical if self.categorical.any() else None,
            random_state=int(random.integers(2**31)),
        )
        self.spread: ResidualSpread | None = None
        if context.continuous:
            self.model = HistGradientBoostingRegressor(**choices).fit(inputs, rows.y, sample_weight=rows.weight)
            self.spread = ResidualSpread(rows.y - self.model.predict(inputs), rows.a, rows.weight)
        else:
            self.model = HistGradientBoostingClassifier(**choices).fit(inputs, rows.y, sample_weight=rows.weight)

    def _hidden(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """What the trees may see: (n, columns with a value), NaN where unknown."""
        hidden = np.where(known_cells(x, a), x, np.nan)[:, self.used]
        # A level beyond those the trees can hold is unknown to them.
        return np.where(self.categorical & (hidden >= MOST_CODES), np.nan, hidden)

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        inputs = self.bins.of(self._hidden(x, a))
        if self.spread is not None:
            return gaussian(self.model.predict(inputs), self.spread, known_cells(x, a))
        return all_classes(self.model.predict_proba(inputs), self.model.classes_, self.n_classes, self.n_rows)


GRID = (
    TreeSettings(depth=1, rounds=15),
    TreeSettings(depth=1, rounds=50),
    TreeSettings(depth=1, rounds=150),
    TreeSettings(depth=2, rounds=50),
    TreeSettings(depth=2, rounds=120),
)
LONG_ROWS = 1000
LONG_GRID = (
    TreeSettings(depth=3, rounds=150),
    TreeSettings(depth=4, rounds=200, rate=0.05, leaf=10),
    TreeSettings(depth=6, rounds=120, rate=0.05, leaf=10),
    TreeSettings(depth=6, rounds=250, rate=0.05, leaf=20),
)
"""Further settings, for so many rows: they can teach deeper trees."""


class TreeModel(PartialModel[TreeSettings]):
    """Depth and number of trees are chosen by cross-validation."""

    def __init__(self, grid: tuple[TreeSettings, ...] | None = None, n_folds: int = 3):
        super().__init__(n_folds)
        self.grid = grid
        """None: GRID, and LONG_GRID where there are rows enough."""

    def candidates(self, context: Context) -> list[TreeSettings]:
        if self.grid is not None:
            return list(self.grid)
        return [*GRID, *(LONG_GRID if len(context.y) >= LONG_ROWS else ())]

    def fitted(self, context: Context, settings: TreeSettings, random: np.random.Generator) -> FittedTrees:
        return FittedTrees(context, settings, random)

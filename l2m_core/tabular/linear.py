"""Logistic and ridge regression on rows whose unknown cells are filled with the mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from l2m_core.tabular.partial_models import PartialModel, ResidualSpread, all_classes, gaussian, masked_copies
from l2m_core.tabular.predictions import Prediction
from l2m_core.tabular.preparation import Context, Encoding, known_cells


@dataclass(frozen=True)
class LinearSettings:
    """What cross-validation chooses."""

    strength: float
    """C of logistic regression: the inverse of the L2 penalty; ridge takes 1 / C."""
    copies: int
    """Copies of each row with random parts hidden; 0 learns from the rows as recorded."""
    indicators: bool
    """Whether being known has weights of its own."""


class FittedLinear:
    """One regression."""

    def __init__(self, context: Context, settings: LinearSettings, random: np.random.Generator):
        self.encoding = Encoding(context)
        self.indicators = settings.indicators
        self.n_classes, self.n_rows = context.n_classes, len(context.y)
        rows = masked_copies(context, settings.copies, random)
        inputs = self._inputs(rows.x, rows.a)
        self.spread: ResidualSpread | None = None
        if context.continuous:
            self.model = Ridge(alpha=1 / settings.strength).fit(inputs, rows.y, sample_weight=rows.weight)
            self.spread = ResidualSpread(rows.y - self.model.predict(inputs), rows.a, rows.weight)
        else:
            self.model = LogisticRegression(C=settings.strength, max_iter=300, tol=1e-3)
            self.model.fit(inputs, rows.y, sample_weight=rows.weight)

    def _inputs(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        masked = self.encoding.masked(x, a).astype(np.float64)
        return masked if self.indicators else masked[:, : self.encoding.width]

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        inputs = self._inputs(x, a)
        if self.spread is not None:
            return gaussian(self.model.predict(inputs), self.spread, known_cells(x, a))
        return all_classes(self.model.predict_proba(inputs), self.model.classes_, self.n_classes, self.n_rows)


class LinearModel(PartialModel[LinearSettings]):
    """L2-regularised regression; the penalty, hidden copies and indicators are chosen by cross-validation."""

    def __init__(
        self,
        strengths: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        variants: tuple[tuple[int, bool], ...] = ((0, False),),
        n_folds: int = 5,
    ):
        super().__init__(n_folds)
        self.strengths = strengths
        self.variants = variants
        """(copies, indicators) to choose from. Copies and indicators lost on real tables of 100 and 400 rows."""

    def candidates(self, context: Context) -> list[LinearSettings]:
        return [LinearSettings(C, copies, indicators) for copies, indicators in self.variants for C in self.strengths]

    def fitted(self, context: Context, settings: LinearSettings, random: np.random.Generator) -> FittedLinear:
        return FittedLinear(context, settings, random)

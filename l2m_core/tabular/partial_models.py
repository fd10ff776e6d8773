"""scikit-learn models that predict from partly known rows; their settings are chosen by cross-validation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from sklearn.linear_model import GammaRegressor

from l2m_core.metrics import row_losses
from l2m_core.tabular.predictions import Gaussian, Prediction
from l2m_core.tabular.preparation import Context, folds, random_acquisitions

Settings = TypeVar("Settings")


class Fitted(Protocol):
    """A model that has learned from some rows."""

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        """As Method.predict."""


@dataclass(frozen=True)
class OneClass:
    """Predicts the only class that its rows had, whatever is known of a row."""

    code: int
    n_classes: int
    n_rows: int

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        return all_classes(np.ones((len(x), 1)), np.array([self.code]), self.n_classes, self.n_rows)


@dataclass(frozen=True)
class Fold:
    """A fitted model and the held-out rows."""

    fitted: Fitted
    held: Context


class PartialModel(ABC, Generic[Settings]):
    """Chooses settings by cross-validated loss at random acquisitions, then learns from all rows."""

    def __init__(self, n_folds: int = 5):
        self.n_folds = n_folds

    def fit(self, context: Context, random: np.random.Generator) -> PartialModel[Settings]:
        fold = folds(context, self.n_folds, random)
        held = [context.rows(np.flatnonzero(fold == k)) for k in range(self.n_folds)]
        training = [context.rows(np.flatnonzero(fold != k)) for k in range(self.n_folds)]
        # The same masks for every candidate: their losses differ by the settings alone.
        held_a = [random_acquisitions(rows.r, rows.acquirable, rows.groups, random) for rows in held]
        best_loss = float("inf")
        for settings in self.candidates(context):
            fitted = [self._learn(rows, settings, random) for rows in training]
            loss = sum(
                float(row_losses(model.predict(rows.x, a), rows.y).sum())
                for model, rows, a in zip(fitted, held, held_a, strict=True)
            )
            # Candidates come simplest first, so that of equal losses the simpler one is kept.
            if loss < best_loss:
                best_loss, self.settings = loss, settings
                self.folds = [Fold(model, rows) for model, rows in zip(fitted, held, strict=True)]
        self.final = self.fitted(context, self.settings, random)
        return self

    def _learn(self, context: Context, settings: Settings, random: np.random.Generator) -> Fitted:
        """As `fitted`. Without the fold of a class's only row one class may be left, which no classifier learns from."""
        if not context.continuous and len(np.unique(context.y)) == 1:
            return OneClass(int(context.y[0]), context.n_classes, len(context.y))
        return self.fitted(context, settings, random)

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        return self.final.predict(np.asarray(x, dtype=np.float32), np.asarray(a, dtype=bool))

    @abstractmethod
    def candidates(self, context: Context) -> list[Settings]:
        """Settings to choose from, simplest first."""

    @abstractmethod
    def fitted(self, context: Context, settings: Settings, random: np.random.Generator) -> Fitted:
        """Learn from these rows with these settings."""


@dataclass(frozen=True)
class MaskedCopies:
    """Rows copied with parts of them hidden, so that a model meets the partly known rows it will be asked about."""

    x: np.ndarray
    """(M, d)"""
    a: np.ndarray
    """(M, d) bool"""
    y: np.ndarray
    """(M,)"""
    weight: np.ndarray
    """(M,) the copies of a row weigh 1 together"""


def masked_copies(context: Context, copies: int, random: np.random.Generator) -> MaskedCopies:
    """Each row once with all it has, and copies more times with random acquisitions."""
    masks = [context.r]
    masks += [random_acquisitions(context.r, context.acquirable, context.groups, random) for _ in range(copies)]
    times = copies + 1
    return MaskedCopies(
        np.tile(context.x, (times, 1)),
        np.concatenate(masks),
        np.tile(context.y, times),
        np.full(times * len(context.y), 1 / times),
    )


def all_classes(probabilities: np.ndarray, classes: np.ndarray, n_classes: int, n_rows: int) -> np.ndarray:
    """(n, seen classes) → (n, K); a class that no row had gets the share of one row among n_rows + K."""
    if len(classes) == n_classes:
        return probabilities
    unseen = 1 / (n_rows + n_classes)
    full = np.full((len(probabilities), n_classes), unseen)
    full[:, classes] = probabilities * (1 - unseen * (n_classes - len(classes)))
    return full


class ResidualSpread:
    """The variance of a regression's residuals, as a log-linear function of which cells are known.

    A gamma model of squared residuals with a log link has the same estimating equations as the variance of a normal
    distribution.
    """

    SMALLEST = 1e-3

    def __init__(self, residuals: np.ndarray, a: np.ndarray, weight: np.ndarray):
        self._unit = float(np.average(residuals**2, weights=weight)) or 1.0
        squared = np.maximum(residuals**2 / self._unit, self.SMALLEST)
        self._model = GammaRegressor(alpha=1e-2, max_iter=200).fit(a.astype(np.float64), squared, sample_weight=weight)

    def std(self, a: np.ndarray) -> np.ndarray:
        """(n,)"""
        return np.sqrt(np.maximum(self._model.predict(a.astype(np.float64)), self.SMALLEST) * self._unit)


def gaussian(mean: np.ndarray, spread: ResidualSpread, a: np.ndarray) -> Gaussian:
    return Gaussian(mean.astype(np.float64), spread.std(a))

"""Two orders for any predictor of partly known rows: fixed by importance, and greedy value of information."""

from __future__ import annotations

import numpy as np

from l2m_core.methods.interface import block, register
from l2m_core.methods.neighbours import Neighbours
from l2m_core.metrics import entropies, row_losses
from l2m_core.tabular.linear import LinearModel
from l2m_core.tabular.partial_models import Fold, PartialModel
from l2m_core.tabular.predictions import CohortLike, Gaussian, Prediction, known_cells
from l2m_core.tabular.preparation import Context, prepare, random_acquisitions
from l2m_core.tabular.trees import TreeModel

MOST_CELLS = 4_000_000
"""Cells of filled-in rows held at once."""


def hiding_importance(folds: list[Fold], draws: int, random: np.random.Generator) -> np.ndarray:
    """(d,) by how much the loss of unseen rows rises when a feature is hidden, averaged over what else is known.

    What else is known is a random acquisition, so that of two copies of one feature neither counts for nothing. A panel
    is hidden as one, and each of its features counts for what that costs.
    """
    d = folds[0].held.x.shape[1]
    rise, count = np.zeros(d), np.zeros(d)
    for fold in folds:
        held = fold.held
        for _ in range(draws):
            a = random_acquisitions(held.r, held.acquirable, held.groups, random)
            losses = row_losses(fold.fitted.predict(held.x, a), held.y)
            for features in held.actions:
                recorded = np.any(held.r[:, features], axis=1)
                if not recorded.any():
                    continue
                flipped = a[recorded].copy()
                revealed = ~np.any(flipped[:, features], axis=1)
                flipped[:, features] = revealed[:, None] & held.r[recorded][:, features]
                other = row_losses(fold.fitted.predict(held.x[recorded], flipped), held.y[recorded])
                # The features were hidden by the flip, or revealed by it.
                rise[features] += np.where(revealed, losses[recorded] - other, other - losses[recorded]).sum()
                count[features] += recorded.sum()
    return rise / np.maximum(count, 1)


class FixedOrder:
    """The same order for every row: by importance on rows that the model had not seen."""

    def __init__(self, model: PartialModel, *, seed: int = 0, draws: int = 4):
        self.model = model
        self.seed = seed
        self.draws = draws
        """Random acquisitions of each row over which importance is averaged."""

    def fit(self, cohort: CohortLike) -> FixedOrder:
        context = prepare(cohort)
        random = np.random.default_rng(self.seed)
        self.acquirable = context.acquirable
        self.model.fit(context, random)
        self.importance = hiding_importance(self.model.folds, self.draws, random)
        return self

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        return self.model.predict(x, a)

    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        return block(np.broadcast_to(self.importance, np.shape(a)), a, self.acquirable)


class ValueOfInformation:
    """Greedy: the action whose value, filled in from similar rows of the context, sharpens the prediction most.

        score_j = H( mean_k p(y | x⊙a, x_j = v_k) ) − mean_k H( p(y | x⊙a, x_j = v_k) )

    v_k are the values of j in the k nearest context rows that have it, near in the features known so far; of a panel,
    of all its features together. It is the expected drop of entropy from the belief that these values imply; never
    negative.
    """

    def __init__(self, model: PartialModel, *, seed: int = 0, neighbours: int = 20):
        self.model = model
        self.seed = seed
        self.neighbours = neighbours

    def fit(self, cohort: CohortLike) -> ValueOfInformation:
        context = prepare(cohort)
        random = np.random.default_rng(self.seed)
        self.acquirable = context.acquirable
        self.model.fit(context, random)
        self.neighbourhood = Neighbours(context, random)
        self.context: Context = self.neighbourhood.context
        return self

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        return self.model.predict(x, a)

    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        x, a = np.asarray(x, dtype=np.float32), np.asarray(a, dtype=bool)
        scores = np.zeros(x.shape)
        chunk = max(1, MOST_CELLS // (self.neighbours * x.shape[1]))
        for start in range(0, len(x), chunk):
            rows = slice(start, start + chunk)
            nearest = self.neighbourhood.nearest(x[rows], known_cells(x[rows], a[rows]))
            for features in self.context.actions:
                ask = ~np.all(a[rows][:, features], axis=1)
                if ask.any() and self.context.r[:, features].any():
                    value = np.zeros((len(ask), 1))
                    value[ask, 0] = self._sharpening(x[rows][ask], a[rows][ask], nearest[ask], features)
                    scores[rows, features] = value
        return block(scores, a, self.acquirable)

    def _sharpening(self, x: np.ndarray, a: np.ndarray, nearest: np.ndarray, features: np.ndarray) -> np.ndarray:
        """(n,) expected drop of entropy from learning these features, those that are not known yet"""
        has = np.any(self.context.r[:, features], axis=1)
        having = has[nearest]
        k = min(self.neighbours, int(has.sum()))
        # The first k of the nearest rows that have any of them: (n · k)
        first = nearest[having & (having.cumsum(1) <= k)]
        filled, known = np.repeat(x, k, axis=0), np.repeat(a, k, axis=0)
        values = self.context.x[first][:, features]
        filled[:, features] = np.where(known[:, features], filled[:, features], values)
        known[:, features] |= ~np.isnan(values)
        prediction = self.model.predict(filled, known)
        return np.maximum(entropies(mixture(prediction, k)) - entropies(prediction).reshape(-1, k).mean(1), 0)


def mixture(prediction: Prediction, k: int) -> Prediction:
    """(n · k) predictions → the n averages of k neighbours; normals are matched in mean and variance."""
    if isinstance(prediction, Gaussian):
        mean, std = prediction.mean.reshape(-1, k), prediction.std.reshape(-1, k)
        return Gaussian(mean.mean(1), np.sqrt(mean.var(1) + (std**2).mean(1)))
    return prediction.reshape(-1, k, prediction.shape[1]).mean(1)


@register("logistic")
def logistic(*, seed: int = 0, **settings) -> FixedOrder:
    """Regularised logistic (or ridge) regression, fixed order."""
    return FixedOrder(LinearModel(**settings), seed=seed)


@register("boosting")
def boosting(*, seed: int = 0, **settings) -> FixedOrder:
    """Gradient-boosted trees, fixed order."""
    return FixedOrder(TreeModel(**settings), seed=seed)


@register("logistic_voi")
def logistic_voi(*, seed: int = 0, neighbours: int = 20, **settings) -> ValueOfInformation:
    """Regularised logistic (or ridge) regression, greedy value of information."""
    return ValueOfInformation(LinearModel(**settings), seed=seed, neighbours=neighbours)


@register("boosting_voi")
def boosting_voi(*, seed: int = 0, neighbours: int = 20, **settings) -> ValueOfInformation:
    """Gradient-boosted trees, greedy value of information."""
    return ValueOfInformation(TreeModel(**settings), seed=seed, neighbours=neighbours)

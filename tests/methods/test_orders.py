"""The two orders that any predictor of partly known rows can be given, on a predictor that is known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from l2m_core.methods.orders import FixedOrder, ValueOfInformation, mixture
from l2m_core.tabular.partial_models import Fold, PartialModel
from l2m_core.tabular.predictions import Gaussian, known_cells
from l2m_core.tabular.preparation import Context
from tests.methods.cohorts import Table

CAUSE, COPY, NOISE = 0, 1, 2
HIGH, LOW = 0.9, 0.2
"""Chance of the outcome where the cause is 1, and where it is 0."""


class Exact(PartialModel):
    """Knows the cause's effect, and that without it half of the rows have it; reads nothing else."""

    def fit(self, context: Context, random: np.random.Generator) -> Exact:
        self.final = self
        self.folds = [Fold(self, context)]
        return self

    def predict(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        known = known_cells(x, a)[:, CAUSE]
        p = np.where(known, np.where(x[:, CAUSE] > 0.5, HIGH, LOW), (HIGH + LOW) / 2)
        return np.stack([1 - p, p], 1)

    def candidates(self, context):
        return []

    def fitted(self, context, settings, random):
        return self


def table(rows: int = 200) -> Table:
    random = np.random.default_rng(0)
    cause = np.arange(rows) % 2
    y = (random.random(rows) < np.where(cause == 1, HIGH, LOW)).astype(np.int64)
    x = np.stack([cause, cause, random.integers(0, 2, rows)], 1).astype(np.float32)
    no, one = np.zeros(3, dtype=bool), np.ones(3, dtype=np.float32)
    return Table(x, y, "binary", 2, acquirable=~no, categorical=no, costs=one)


def entropy(p: float) -> float:
    return float(-p * np.log(p) - (1 - p) * np.log(1 - p))


def test_the_value_of_information_is_the_mutual_information_under_the_predictor():
    voi = ValueOfInformation(Exact(), neighbours=200).fit(table())
    scores = voi.rank(np.full((1, 3), np.nan, dtype=np.float32), np.zeros((1, 3), dtype=bool))[0]
    information = entropy((HIGH + LOW) / 2) - (entropy(HIGH) + entropy(LOW)) / 2
    assert scores[CAUSE] == pytest.approx(information, abs=1e-6)
    assert scores[[COPY, NOISE]] == pytest.approx([0, 0], abs=1e-6)


def test_values_are_filled_in_from_rows_alike_in_what_is_known():
    """Once the copy is known, the rows near it have one value of the cause, which then tells nothing new."""
    voi = ValueOfInformation(Exact(), neighbours=50).fit(table())
    x, a = np.array([[np.nan, 1, np.nan]], dtype=np.float32), np.array([[False, True, False]])
    assert voi.rank(x, a)[0, CAUSE] == pytest.approx(0, abs=1e-6)
    noise_known = voi.rank(np.array([[np.nan, np.nan, 1]], dtype=np.float32), a[:, [0, 2, 1]])[0]
    assert noise_known[CAUSE] > 0.1


def test_a_mixture_of_normals_keeps_mean_and_variance():
    mixed = mixture(Gaussian(np.array([0.0, 4.0]), np.array([1.0, 1.0])), 2)
    assert isinstance(mixed, Gaussian)
    assert mixed.mean == pytest.approx([2.0]) and mixed.std**2 == pytest.approx([1 + 4.0])


def test_a_fixed_order_goes_by_the_loss_that_hiding_a_feature_costs():
    method = FixedOrder(Exact(), draws=10).fit(table())
    rank = method.rank(np.zeros((5, 3), dtype=np.float32), np.zeros((5, 3), dtype=bool))
    assert (rank == rank[0]).all() and rank[0].argmax() == CAUSE
    assert method.importance[[COPY, NOISE]] == pytest.approx([0, 0])
    assert method.importance[CAUSE] > 0.05

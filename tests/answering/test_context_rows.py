"""Of a long cohort an even part is read, and a cohort outside the trained range is told so in words."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import l2m_core as l2m
from l2m_core.answering.context_rows import MOST_ROWS, even_rows, shorten
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import CohortError


def cohort_of(rows: int, features: int = 2, classes: int = 3, kind: str | None = None) -> l2m.Cohort:
    x = np.random.default_rng(0).normal(size=(rows, features)).astype(np.float32)
    return l2m.Cohort.from_arrays(x, x[:, 0] if kind == "continuous" else np.arange(rows) % classes, kind=kind)


def test_every_class_keeps_its_share_and_rows_their_order() -> None:
    y = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)[torch.randperm(100, generator=torch.Generator().manual_seed(0))]
    rows = even_rows(y, 20)
    assert rows.tolist() == sorted(set(rows.tolist())) and torch.bincount(y[rows]).tolist() == [12, 6, 2]
    assert even_rows(y, 100).tolist() == list(range(100))


def test_a_continuous_outcome_keeps_its_range() -> None:
    cohort = cohort_of(500, kind="continuous")
    part = shorten(cohort, 50)
    assert len(part) == 50 and part.y.min() == cohort.y.min() and part.y.max() == cohort.y.max()
    assert np.quantile(part.y, [0.25, 0.5, 0.75]) == pytest.approx(np.quantile(cohort.y, [0.25, 0.5, 0.75]), abs=0.1)


def test_a_model_trained_on_more_rows_reads_as_many() -> None:
    assert TrainedRange(context_rows=100).most_rows == MOST_ROWS
    assert TrainedRange(context_rows=5000).most_rows == 5000


def test_each_way_out_of_the_range_has_its_sentence() -> None:
    trained = TrainedRange(features=2, context_rows=50, classes=4)
    assert trained.check(cohort_of(40), "m") == ()
    features, rows = trained.check(cohort_of(200, features=5), "m")
    assert "5 features, 2.5 times the 2" in features and "200 context rows, 4.0 times the 50" in rows
    assert trained.check(cohort_of(200, features=5), "m", together=50) == (features,)


def test_an_outcome_that_the_model_was_not_trained_for_is_refused() -> None:
    with pytest.raises(CohortError, match="6 classes; model 'm' supports at most 4"):
        TrainedRange(classes=4).check(cohort_of(60, classes=6), "m")
    with pytest.raises(CohortError, match="not trained for a continuous outcome"):
        TrainedRange(outcomes=("binary",)).check(cohort_of(60, kind="continuous"), "m")


def test_a_trained_range_says_all_that_it_holds():
    trained = TrainedRange(features=30, context_rows=1200, classes=4, outcomes=("binary", "multiclass"))
    assert trained.sentence == (
        "Trained for up to 30 features, 1,200 context rows, 4 classes; outcomes: binary, multiclass."
    )

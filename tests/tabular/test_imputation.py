"""What is not known of a row, given what is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from l2m_core.cohort import Cohort
from l2m_core.tabular import imputation
from l2m_core.tabular.imputation import Imputation
from l2m_core.tabular.preparation import prepare


def test_what_is_unknown_follows_from_what_is_known():
    generator = np.random.default_rng(2)
    shared = generator.normal(size=(2000, 1))
    x = (0.8**0.5 * shared + 0.2**0.5 * generator.normal(size=(2000, 2))).astype(np.float32)
    x[generator.random(x.shape) < 0.2] = np.nan
    x = np.column_stack([x, generator.normal(size=2000)]).astype(np.float32)
    context = prepare(Cohort.from_arrays(x, generator.integers(0, 2, 2000)))
    asked = np.array([[2.0, np.nan, np.nan]], dtype=np.float32)
    imputed = Imputation(context)(asked, np.ones_like(asked, dtype=bool))
    # A correlation of 0.8: the middle follows by so much, and 1 − 0.8² of the variance is left.
    assert imputed.middle[0].tolist() == pytest.approx([2.0, 1.6, 0.0], abs=0.15)
    assert imputed.variance[0].tolist() == pytest.approx([0.0, 0.36, 1.0], abs=0.08)


def test_rows_that_know_the_same_and_rows_that_do_not_are_imputed_as_each_is_alone(monkeypatch: pytest.MonkeyPatch):
    generator = np.random.default_rng(3)
    x = (generator.normal(size=(60, 4)) @ generator.normal(size=(4, 4))).astype(np.float32)
    impute = Imputation(prepare(Cohort.from_arrays(x, generator.integers(0, 2, 60))))
    a = np.repeat(generator.random((20, 4)) < 0.5, 3, axis=0)
    together = impute(x, a)
    monkeypatch.setattr(imputation, "CELLS", 2 * 4 * 4)  # two patterns, and two rows, at a time
    few = impute(x, a)
    for row in range(60):
        alone = impute(x[row : row + 1], a[row : row + 1])
        for other in (together, few):
            assert torch.allclose(other.middle[row], alone.middle[0]) and torch.allclose(
                other.variance[row], alone.variance[0]
            )

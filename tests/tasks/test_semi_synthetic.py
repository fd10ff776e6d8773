"""Tasks on the rows of a real table."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_breast_cancer

from l2m_core.errors import ConfigError
from l2m_core.tasks.missingness import Missingness
from l2m_core.tasks.semi_synthetic import SemiSyntheticConfig, SemiSyntheticPrior

COMPLETE = Missingness.only("none")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_breast_cancer(return_X_y=True)
    return x[:, :8].astype(np.float32), y.astype(np.int64)


@pytest.fixture(scope="module")
def holed(table) -> np.ndarray:
    x = table[0].copy()
    x[np.random.default_rng(0).random(x.shape) < 0.3] = np.nan
    return x


def test_rows_are_rows_of_the_table_and_none_comes_twice(table):
    batch = SemiSyntheticPrior(x=table[0]).sample(seeded(), 5, 300, 8)
    known = {row.tobytes() for row in table[0]}
    for task in batch.x.numpy():
        drawn = [row.tobytes() for row in task]
        assert set(drawn) <= known and len(set(drawn)) == 300


def test_a_narrower_task_draws_its_own_columns(table):
    prior = SemiSyntheticPrior(x=table[0], acquirable=np.arange(8) == 5)
    batch = prior.sample(seeded(), 12, 100, 3)
    columns = {column.tobytes() for column in np.sort(table[0], axis=0).T}
    everything = prior.sample(seeded(), 1, len(table[0]), 3).x[0].sort(dim=0).values.T.contiguous().numpy()
    assert {column.tobytes() for column in everything} <= columns
    assert (batch.acquirable.sum(dim=1) == 1).all(), "the only acquirable column is always among them"


def test_real_labels_stay_with_their_rows(table):
    x, y = table
    config = SemiSyntheticConfig(labels="real", missingness=COMPLETE)
    batch = SemiSyntheticPrior(config, x=x, y=y).sample(seeded(), 4, 200, 8)
    outcome = {row.tobytes(): code for row, code in zip(x, y, strict=True)}
    for rows, codes in zip(batch.x.numpy(), batch.y.tolist(), strict=True):
        assert [outcome[row.tobytes()] for row in rows] == codes
    assert batch.n_classes.tolist() == [2] * 4 and batch.truth is None


def test_a_real_continuous_outcome_stays_continuous(table):
    config = SemiSyntheticConfig(labels="real")
    batch = SemiSyntheticPrior(config, x=table[0], y=table[0][:, 0]).sample(seeded(), 2, 50, 8)
    assert batch.continuous and torch.equal(batch.y, batch.x[:, :, 0])


def test_labels_from_the_prior_carry_calibrated_truth(table):
    batch = SemiSyntheticPrior(x=table[0]).sample(seeded(), 60, 400, 8)
    probability = batch.truth.probabilities[..., 1].flatten()
    for part in probability.argsort().chunk(8):
        said, seen = probability[part], (batch.y.flatten()[part] == 1).float()
        assert abs(said.mean() - seen.mean()) < 4.5 * (said * (1 - said)).sum().sqrt() / len(part) + 1e-4
    assert batch.truth.informative.shape == batch.x.shape


def test_what_the_table_lacks_stays_missing_and_is_filled_from_its_own_column(holed):
    batch = SemiSyntheticPrior(SemiSyntheticConfig(missingness=COMPLETE), x=holed).sample(seeded(), 3, 400, 8)
    assert batch.x.isfinite().all()
    assert (~batch.r).float().mean().item() == pytest.approx(0.3, abs=0.03)
    for column in range(8):
        assert np.isin(batch.x[:, :, column].numpy(), holed[:, column]).all()


def test_filled_values_count_as_recorded_where_asked(holed):
    config = SemiSyntheticConfig(missingness=COMPLETE, keep_missing=False)
    assert SemiSyntheticPrior(config, x=holed).sample(seeded(), 3, 400, 8).r.all()


def test_grafted_masks_are_masks_of_the_table(holed):
    config = SemiSyntheticConfig(graft=1.0, keep_missing=False)
    batch = SemiSyntheticPrior(config, x=holed).sample(seeded(), 3, 200, 8)
    known = {tuple(row) for row in (~np.isnan(holed)).tolist()}
    assert {tuple(row) for row in batch.r.flatten(0, 1).tolist()} <= known


def test_categories_have_effects_that_do_not_follow_their_codes():
    """A category's code enters the outcome only through which rows share it: renaming codes keeps the tasks alike."""
    code = np.random.default_rng(0).integers(0, 4, (500, 1)).astype(np.float32)
    prior = SemiSyntheticPrior(x=code, categorical=np.array([True]))
    batch = prior.sample(seeded(), 20, 400, 1)
    assert batch.categorical.all()
    ranks = []
    for x, p in zip(batch.x[..., 0], batch.truth.probabilities[..., 1], strict=True):
        levels = [p[x == k] for k in range(4)]
        assert all(level.std() < 1e-4 for level in levels)
        ranks.append(tuple(torch.stack([level.mean() for level in levels]).argsort().tolist()))
    assert len(set(ranks)) > 6


def test_it_draws_from_a_real_cohort_with_holes(shared_data):
    frame = pd.read_csv(shared_data / "heart_cleveland.csv")
    numbers = frame.select_dtypes("number")
    prior = SemiSyntheticPrior(SemiSyntheticConfig(graft=0.5), x=numbers.to_numpy(np.float32))
    batch = prior.sample(seeded(), 4, 200, numbers.shape[1])
    assert batch.x.isfinite().all() and batch.truth.probabilities.isfinite().all()


def test_bad_tables_are_refused_by_name(table):
    x, y = table
    with pytest.raises(ConfigError, match="569 rows and 8 columns"):
        SemiSyntheticPrior(x=x).sample(seeded(), 1, 600, 8)
    with pytest.raises(ConfigError, match="pass y"):
        SemiSyntheticPrior(SemiSyntheticConfig(labels="real"), x=x)
    with pytest.raises(ConfigError, match="outcome y has shape"):
        SemiSyntheticPrior(x=x, y=y[:5])
    with pytest.raises(ConfigError, match="`categorical`"):
        SemiSyntheticPrior(x=x, categorical=np.array([True]))
    with pytest.raises(ConfigError, match="acquirable"):
        SemiSyntheticPrior(x=x, acquirable=np.zeros(8, dtype=bool))
    with pytest.raises(ConfigError, match=r"Columns \[2\]"):
        SemiSyntheticPrior(x=np.where(np.arange(8) == 2, np.nan, x))

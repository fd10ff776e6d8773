"""The categories prior: what a level tells is its own, and the truth agrees with the outcomes."""

import pytest
import torch

from l2m_core.tasks.categories import CategoriesConfig, CategoriesPrior
from tests.tasks.calibration import assert_calibrated


def drawn(seed: int = 0, tasks: int = 60, rows: int = 400, features: int = 6, **settings):
    prior = CategoriesPrior(CategoriesConfig(**settings))
    return prior.sample(torch.Generator().manual_seed(seed), tasks, rows, features)


def test_columns_are_whole_codes_of_as_many_levels_as_asked_for():
    batch = drawn(categories=(2.0, 2.0), levels=(3.0, 5.0), unordered_share=1.0)
    assert torch.equal(batch.x, batch.x.round()) and batch.categorical.all()
    assert batch.x.min() == 0 and batch.x.max() == 4
    common = [len(column.unique()) for column in batch.x.transpose(1, 2).flatten(0, 1)]
    assert sum(count in (3, 4, 5) for count in common) > 0.8 * len(common)  # a rare level may have no row


def test_probabilities_are_calibrated_against_the_drawn_outcomes():
    assert_calibrated(drawn(1, max_classes=4))


def test_a_line_through_the_codes_explains_less_than_the_levels():
    """Of one column of some levels: the means by level, against a line through their codes."""
    batch = drawn(2, features=1, outcome="continuous", categories=(2.0, 2.0), levels=(4.0, 6.0), rows=2000)
    shares = []
    for x, score in zip(batch.x[..., 0], batch.truth.mean, strict=True):
        if not score.isfinite().all() or score.std() < 1e-6 or len(x.unique()) < 3:
            continue
        line = torch.corrcoef(torch.stack([x, score]))[0, 1].square()
        by_level = torch.stack([score[x == code].mean() for code in x.unique()])[torch.searchsorted(x.unique(), x)]
        assert torch.allclose(by_level, score, atol=1e-3 * float(score.abs().max()))  # a level's effect is its own
        shares.append(float(line))
    assert len(shares) > 20 and sum(shares) / len(shares) < 0.6


def test_rules_make_columns_tell_together():
    """Of two columns under rules some cells of their table differ from the sum of both."""
    columns = {"features": 2, "categories": (2.0, 2.0), "levels": (2.0, 2.0)}
    batch = drawn(3, tasks=200, rows=1000, outcome="continuous", rule_share=1.0, **columns)
    together = 0
    for x, score in zip(batch.x, batch.truth.mean, strict=True):
        cells = [score[(x[:, 0] == i) & (x[:, 1] == j)] for i in (0, 1) for j in (0, 1)]
        if score.isfinite().all() and all(len(cell) for cell in cells):
            a, b, c, d = (cell.mean() for cell in cells)
            together += int((a - b - c + d).abs() > 0.1 * score.std())
    assert together > 20


@pytest.mark.parametrize("outcome", ["classes", "continuous"])
def test_some_measurements_are_among_the_columns(outcome):
    batch = drawn(4, outcome=outcome, categories=(0.3, 0.6))
    distinct = torch.tensor([len(column.unique()) for column in batch.x.transpose(1, 2).flatten(0, 1)])
    assert (distinct > 300).any() and (distinct < 10).any() and batch.x.isfinite().all()

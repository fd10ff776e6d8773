"""Foreseen results: ranks, the column's own distribution as the start, and what is asked of a density."""

import pytest
import torch

from l2m_core.model.columns import fit_columns
from l2m_core.model.results import (
    CHANCES,
    OTHER_CHANCES,
    SharedValues,
    cumulative,
    probability_up_to,
    rank_at,
    rank_interval,
    results_to_try,
    value_loss,
)
from tests.model.examples import draw_example, tiny_model


def columns_of(*values: float):
    x = torch.tensor(values).view(1, -1, 1)
    return fit_columns(x, torch.ones_like(x, dtype=torch.bool), torch.zeros(1, 1, dtype=torch.bool))


def interval(columns, value: float) -> tuple[float, float]:
    low, high = rank_interval(columns, torch.tensor([[[value]]]))
    return float(low), float(high)


def test_a_level_covers_its_share_of_the_column():
    columns = columns_of(0, 1, 1, 1)
    assert interval(columns, 0) == (0, 0.25) and interval(columns, 1) == (0.25, 1)


def test_a_value_between_two_rows_gets_the_room_of_one():
    columns = columns_of(1, 2, 3, 4)
    assert interval(columns, 2.5) == (0.375, 0.625)
    assert interval(columns, -9) == (0, 0.125) and interval(columns, 99) == (0.875, 1)


def test_a_flat_density_is_the_columns_own_distribution():
    columns, logits = columns_of(0, 1, 1, 1, 5), torch.zeros(1, 1, 1, 8)
    for value in (0.0, 1.0, 3.0, 5.0, 7.0):
        assert float(value_loss(logits, columns, torch.tensor([[[value]]]))) == pytest.approx(0, abs=1e-6)


def test_the_loss_is_the_log_loss_of_the_level_above_its_share():
    columns, logits = columns_of(0, 1, 1, 1), torch.tensor([2.0, 0.0, 0.0, 0.0]).view(1, 1, 1, 4)
    p = logits.softmax(-1)[..., 0]  # the first quarter of the ranks is exactly the level 0
    assert float(value_loss(logits, columns, torch.zeros(1, 1, 1))) == pytest.approx(float(-(p / 0.25).log()), rel=1e-5)


def test_probabilities_of_all_levels_add_up_to_one():
    columns, edges = columns_of(0, 1, 1, 4, 4, 4, 9), cumulative(torch.randn(1, 1, 1, 6))
    total = 0.0
    for level in (0.0, 1.0, 4.0, 9.0):
        between = probability_up_to(edges, torch.stack(rank_interval(columns, torch.tensor([[[level]]])), -1))
        total += float(between[..., 1] - between[..., 0])
    assert total == pytest.approx(1, abs=1e-6)


def test_ranks_and_probabilities_are_each_others_inverse():
    edges, levels = cumulative(torch.randn(2, 3, 5, 8)), torch.rand(2, 3, 5, 4)
    torch.testing.assert_close(probability_up_to(edges, rank_at(edges, levels)), levels, atol=1e-5, rtol=0)


def test_a_column_without_a_value_counts_nothing():
    x = torch.zeros(1, 4, 1)
    columns = fit_columns(x, torch.zeros_like(x, dtype=torch.bool), torch.zeros(1, 1, dtype=torch.bool))
    assert float(value_loss(torch.randn(1, 1, 1, 5), columns, torch.zeros(1, 1, 1))) == 0


def test_a_model_foresees_every_feature_and_never_sees_what_is_hidden():
    model, example = tiny_model("cells", "classes", value_bins=6), draw_example("classes", 3)
    memory = model.condition(example.context)
    values = model.query(memory, example.x, example.a).values
    assert values.shape == (*example.x.shape, 6) and values.std() > 0
    changed = torch.where(example.a, example.x, example.x + 7)
    assert torch.equal(values, model.query(memory, changed, example.a).values)
    assert model.query(memory, example.x, example.a, rank=False).values is None


def tried(columns, logits=None):
    logits = torch.zeros(1, 1, 1, 8) if logits is None else logits
    values, chances = results_to_try(logits, columns, torch.zeros(1, 1, 1, dtype=torch.int64))
    return values[0, 0, 0].tolist(), chances[0, 0, 0].tolist()


def test_each_of_a_few_different_values_is_tried_with_its_chance():
    values, chances = tried(columns_of(4, 1, 1, 9, 1))
    assert (
        values[:3] == [1, 4, 9] and chances[:3] == pytest.approx([0.6, 0.2, 0.2]) and sum(chances) == pytest.approx(1)
    )
    assert chances[3:] == pytest.approx([0] * 5)
    skewed = torch.tensor([5.0] + [0.0] * 7).view(1, 1, 1, 8)
    assert tried(columns_of(4, 1, 1, 9, 1), skewed)[1][0] > 0.95


def test_of_many_values_those_at_fixed_points_are_tried():
    values, chances = tried(columns_of(*range(1, 101)))
    assert values[:7] == [3, 13, 30, 50, 70, 88, 98] and chances == pytest.approx([*CHANCES, 0])


def test_results_of_several_columns_are_tried_at_once():
    x = torch.tensor([[float(i), float(i % 2), 7.0] for i in range(20)])[None]
    columns = fit_columns(x, torch.ones_like(x, dtype=torch.bool), torch.zeros(1, 3, dtype=torch.bool))
    values, chances = results_to_try(torch.zeros(1, 1, 3, 8), columns, torch.tensor([[[1, 2, 0]]]))
    assert values[0, 0, 0, :2].tolist() == [0, 1] and values[0, 0, 1, 0] == 7 and chances[0, 0, 1, 0] == 1
    torch.testing.assert_close(chances.sum(-1), torch.ones(1, 1, 3))


def shared_results(columns, logits):
    values, chances, applies = SharedValues.of(columns).results(logits, columns)
    assert chances.sum(-1).tolist() == pytest.approx([1.0] * len(logits))
    return values[0].tolist(), chances[0].tolist(), bool(applies[0])


def test_a_value_that_many_rows_share_is_tried_with_its_own_chance_and_the_others_at_points_of_the_rest():
    columns = columns_of(*[0] * 60, *range(1, 41))
    values, chances, applies = shared_results(columns, torch.zeros(1, 10))
    assert applies and values[0] == 0 and chances[0] == pytest.approx(0.6) and chances[1:3] == [0, 0]
    assert values[3:] == [2, 8, 20, 32, 38] and chances[3:] == pytest.approx([0.4 * share for share in OTHER_CHANCES])
    # The less likely the shared value, the more of the others: what the density says of each side is kept.
    rare = torch.tensor([[0.0] * 6 + [3.0] * 4])
    below = float(rare.softmax(-1)[0, :6].sum())
    values, chances, _ = shared_results(columns, rare)
    assert chances[0] == pytest.approx(below, abs=1e-5) and values[3:] == [2, 8, 20, 32, 38]


def test_several_values_are_shared_and_a_result_that_few_rows_have_is_still_tried():
    columns = columns_of(*[5] * 50, *[-1] * 30, *[9] * 17, 2, 3, 12)
    values, chances, applies = shared_results(columns, torch.zeros(1, 20))
    assert applies and values[:3] == [-1, 5, 9] and chances[:3] == pytest.approx([0.3, 0.5, 0.17])
    assert set(values[3:]) == {2, 3, 12} and sum(chances[3:]) == pytest.approx(0.03, abs=1e-6)
    nothing_shared = columns_of(*range(40))
    assert not shared_results(nothing_shared, torch.zeros(1, 8))[2]

"""The rows encoder: its attention rules, held against one dense mask, and its fixed width."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from l2m_core.errors import ConfigError
from l2m_core.model import rows
from l2m_core.model.interface import Context, ModelConfig
from tests.model.examples import FEATURES, Example, answers, draw_example, tiny_model
from train.study.experiments.rows_speed import dense_mask, dense_pass

OUTCOMES = ["classes", "continuous"]
few = settings(max_examples=6)


def targets_of(example: Example, outcome: str, seed: int) -> Context:
    """Four rows that join one after another."""
    return draw_example(outcome, seed + 77, rows=4).context


def ways(seed: int, count: int = 3) -> torch.Tensor:
    return torch.rand(2, count, 4, FEATURES, generator=torch.Generator().manual_seed(seed)) < 0.5


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("standardise", [True, False])
@few
@given(seed=st.integers(0, 10_000), segment=st.sampled_from([1, 3, 64]))
def test_blocks_answer_as_one_dense_mask_does(outcome, standardise, seed, segment):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "SEGMENT", segment)
        compare_with_dense(outcome, standardise, seed)


def compare_with_dense(outcome, standardise, seed):
    model = tiny_model("rows", outcome, seed, standardise=standardise)
    example = draw_example(outcome, seed)
    targets, a = targets_of(example, outcome, seed), ways(seed)
    blocks = answers(model.autoregress(example.context, targets, a)[0]).unflatten(1, (3, 4))
    for index in range(3):
        dense = answers(dense_pass(model, example.context, targets, a[:, index])[0])
        torch.testing.assert_close(blocks[:, index], dense, rtol=1e-5, atol=1e-5)


def test_the_dense_mask_is_the_rule_spelt_out():
    mask = dense_mask(2, 2).int().tolist()
    assert mask == [
        [1, 1, 0, 0, 0, 0],  # context ↔ context
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],  # targets → context, earlier targets, themselves
        [1, 1, 1, 1, 0, 0],
        [1, 1, 0, 0, 0, 0],  # queries → context and earlier targets
        [1, 1, 1, 0, 0, 0],
    ]


@pytest.mark.parametrize("outcome", OUTCOMES)
@few
@given(seed=st.integers(0, 10_000), changed=st.integers(0, 3))
def test_a_target_reaches_later_queries_only(outcome, seed, changed):
    model, example = tiny_model("rows", outcome, seed), draw_example(outcome, seed)
    targets, a = targets_of(example, outcome, seed), ways(seed)
    y = targets.y.clone()
    y[:, changed] = (y[:, changed] + 1) % 3
    before, after = (
        answers(model.autoregress(example.context, each, a)[0]).unflatten(1, (3, 4))
        for each in (targets, replace(targets, y=y))
    )
    assert torch.equal(before[:, :, : changed + 1], after[:, :, : changed + 1])
    for later in range(changed + 1, 4):
        assert (before[:, :, later] - after[:, :, later]).abs().max() > 1e-6


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_first_target_is_asked_about_as_any_query_is(outcome):
    model, example = tiny_model("rows", outcome), draw_example(outcome, 3)
    targets, a = targets_of(example, outcome, 3), ways(3)
    first = answers(model.autoregress(example.context, targets, a)[0]).unflatten(1, (3, 4))[:, :, 0]
    memory = model.condition(example.context)
    asked = answers(model.query(memory, targets.x[:, :1].expand(-1, 3, -1), a[:, :, 0]))
    torch.testing.assert_close(first, asked, rtol=1e-5, atol=1e-5)


def test_fewer_features_are_read_as_features_never_recorded():
    model, narrow = tiny_model("rows", "classes"), draw_example("classes", 1, features=3)
    c, blank = narrow.context, torch.zeros(2, 12, 2)
    wide = replace(c, x=torch.cat([c.x, blank], -1), r=torch.cat([c.r, blank.bool()], -1))
    wide = replace(wide, categorical=torch.zeros(2, 5, dtype=torch.bool))
    short = model.query(model.condition(c), narrow.x, narrow.a)
    x, a = (torch.cat([t, torch.zeros(2, 5, 2, dtype=t.dtype)], -1) for t in (narrow.x, narrow.a))
    full = model.query(model.condition(wide), x, a)
    torch.testing.assert_close(short.prediction, full.prediction)
    torch.testing.assert_close(short.policy, full.policy[..., :3])


def test_more_features_or_another_kind_of_outcome_is_refused_by_name():
    model = tiny_model("rows", "classes")
    with pytest.raises(ConfigError, match="at most 5 features, and there are 6"):
        model.condition(draw_example("classes", 0, features=6).context)
    with pytest.raises(ConfigError, match="serves classes outcomes only"):
        model.condition(draw_example("continuous", 0).context)
    with pytest.raises(ConfigError, match="needs model.features"):
        ModelConfig(encoder="rows")

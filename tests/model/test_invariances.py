"""What must hold of every encoder, whatever its weights: shown on random weights and random tables."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from l2m_core.model.density import predictive
from tests.model.examples import FEATURES, KINDS, answers, draw_example, tiny_model

both = pytest.mark.parametrize("encoder, outcome", KINDS)
seeds = given(seed=st.integers(0, 10_000))
few = settings(max_examples=6)
TOLERANCE = 1e-5  # in float32; over 400 drawn models and tables the order of rows moved answers by less than 1e-6


def close(left: torch.Tensor, right: torch.Tensor, tolerance: float = TOLERANCE) -> None:
    torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance)


def ask(model, example, context=None, chunk=None):
    with torch.no_grad():
        memory = model.condition(context or example.context, chunk=chunk)
        return answers(model.query(memory, example.x, example.a))


@both
@few
@seeds
def test_the_order_of_context_rows_does_not_matter(encoder, outcome, seed):
    model, example = tiny_model(encoder, outcome, seed), draw_example(outcome, seed)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(seed))
    c = example.context
    shuffled = replace(c, x=c.x[:, order], r=c.r[:, order], y=c.y[:, order])
    close(ask(model, example), ask(model, example, shuffled))


@both
@few
@seeds
def test_answers_follow_their_queries_and_no_query_sees_another(encoder, outcome, seed):
    model, example = tiny_model(encoder, outcome, seed), draw_example(outcome, seed)
    together = ask(model, example)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
    close(ask(model, replace(example, x=example.x[:, order], a=example.a[:, order])), together[:, order])
    alone = ask(model, replace(example, x=example.x[:, 2:3], a=example.a[:, 2:3]))
    close(alone, together[:, 2:3])


@both
@few
@given(seed=st.integers(0, 10_000), chunk=st.sampled_from([None, 5]))
def test_predictions_alone_are_those_that_come_with_a_ranking(encoder, outcome, seed, chunk):
    model, example = tiny_model(encoder, outcome, seed), draw_example(outcome, seed)
    whole = model.query(model.condition(example.context), example.x, example.a)
    memory = model.condition(example.context, chunk, rank=False)
    close(model.query(memory, example.x, example.a, rank=False).prediction, whole.prediction)
    if encoder == "cells":
        with pytest.raises(ValueError, match="rank=True"):
            model.query(memory, example.x, example.a)


@both
@few
@given(seed=st.integers(0, 10_000), junk=st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e30, 0.0]))
def test_a_masked_value_never_matters(encoder, outcome, seed, junk):
    model, example = tiny_model(encoder, outcome, seed), draw_example(outcome, seed)
    context = replace(example.context, x=torch.where(example.context.r, example.context.x, junk))
    spoilt = replace(example, x=torch.where(example.a, example.x, junk))
    expected, found = ask(model, example), ask(model, spoilt, context)
    assert torch.equal(expected, found)
    assert found[~found.isinf()].isfinite().all()


@both
@few
@seeds
def test_a_known_value_matters(encoder, outcome, seed):
    model, example = tiny_model(encoder, outcome, seed), draw_example(outcome, seed)
    example = replace(example, a=torch.ones_like(example.a))
    moved = replace(example, x=example.x + 1.0)
    assert (ask(model, example) - ask(model, moved)).abs().max() > 1e-4


@both
@few
@given(seed=st.integers(0, 10_000), chunk=st.integers(1, 13))
def test_conditioning_in_chunks_equals_conditioning_at_once(encoder, outcome, seed, chunk):
    model, example = tiny_model(encoder, outcome, seed), draw_example(outcome, seed)
    close(ask(model, example, chunk=chunk), ask(model, example))


@both
def test_a_memory_answers_the_same_however_often_it_is_asked(encoder, outcome):
    model, example = tiny_model(encoder, outcome), draw_example(outcome, 1)
    with torch.no_grad():
        memory = model.condition(example.context)
        first = answers(model.query(memory, example.x, example.a))
        model.query(memory, example.x, ~example.a)
        assert torch.equal(first, answers(model.query(memory, example.x, example.a)))
    close(first, ask(model, example))


@both
def test_bfloat16_answers_nearly_as_float32_does(encoder, outcome):
    model, example = tiny_model(encoder, outcome), draw_example(outcome, 2)
    exact = ask(model, example)
    lowered = model.to(torch.bfloat16)
    whole, parts = ask(lowered, example), ask(lowered, example, chunk=5)
    # Eight bits of mantissa through two layers of shaken weights; logits here are of order 1.
    close(whole.float(), exact, 0.15)
    close(whole, parts, 0.1)


@both
def test_training_and_inference_use_different_kernels_with_the_same_answers(encoder, outcome):
    model, example = tiny_model(encoder, outcome), draw_example(outcome, 3)
    with torch.enable_grad():
        trained = answers(model.query(model.condition(example.context), example.x, example.a)).detach()
    close(trained, ask(model, example))


@both
@few
@seeds
def test_a_relaxed_choice_at_0_and_1_answers_as_the_mask_does(encoder, outcome, seed):
    model, example = tiny_model(encoder, outcome, seed), draw_example(outcome, seed)
    more = torch.rand(example.a.shape, generator=torch.Generator().manual_seed(seed)) < 0.4
    with torch.no_grad():
        memory = model.condition(example.context)
        relaxed = answers(model.query(memory, example.x, example.a, (more & ~example.a).float()))
        close(relaxed, answers(model.query(memory, example.x, example.a | more)))


@both
def test_a_relaxed_choice_has_a_gradient(encoder, outcome):
    model, example = tiny_model(encoder, outcome), draw_example(outcome, 4)
    reveal = torch.zeros(example.a.shape, requires_grad=True)
    model.query(model.condition(example.context), example.x, example.a, reveal).prediction[..., 0].sum().backward()
    assert (reveal.grad[~example.a].abs() > 0).all()


@pytest.mark.parametrize("outcome", ["classes", "continuous"])
@few
@seeds
def test_cells_do_not_care_about_the_order_of_features(outcome, seed):
    model, example = tiny_model("cells", outcome, seed), draw_example(outcome, seed)
    order = torch.randperm(FEATURES, generator=torch.Generator().manual_seed(seed))
    c = example.context
    with torch.no_grad():
        straight = model.query(model.condition(c), example.x, example.a)
        context = replace(c, x=c.x[..., order], r=c.r[..., order], categorical=c.categorical[..., order])
        turned = model.query(model.condition(context), example.x[..., order], example.a[..., order])
    close(turned.prediction, straight.prediction)
    close(turned.policy, straight.policy[..., order])
    close(turned.gain, straight.gain[..., order])


@pytest.mark.parametrize("encoder", ["cells", "rows"])
def test_impossible_classes_have_no_chance(encoder):
    model, example = tiny_model(encoder, "classes"), draw_example("classes", 5)
    context = replace(example.context, y=example.context.y.clamp_max(1), n_classes=torch.tensor([2, 2]))
    with torch.no_grad():
        p = model.query(model.condition(context), example.x, example.a).prediction.softmax(-1)
    assert (p[..., 2] == 0).all() and p.sum(-1).allclose(torch.ones(2, 5))


@pytest.mark.parametrize("values, moved_by", [("size", "stretch"), ("rank", "nothing")])
def test_a_model_of_ranks_alone_does_not_see_sizes(values, moved_by):
    model, example = tiny_model("cells", "classes", values=values), draw_example("classes", 5)
    context = replace(example.context, x=example.context.x.exp(), r=torch.ones_like(example.context.r))
    plain = replace(context, x=example.context.x)
    known = torch.ones_like(example.a)
    stretched = ask(model, replace(example, x=example.x.exp(), a=known), context)
    difference = (stretched - ask(model, replace(example, a=known), plain)).abs()
    difference = difference[difference.isfinite()].max()
    assert difference < 1e-5 if moved_by == "nothing" else difference > 1e-3


@both
@pytest.mark.parametrize("unit", [2.0**-20, 2.0**-40, 2.0**-70, 2.0**70])
def test_the_unit_of_values_does_not_matter(encoder, outcome, unit):
    model, example = tiny_model(encoder, outcome, 3), draw_example(outcome, 3)
    c = example.context
    scaled = replace(c, x=c.x * unit)
    close(ask(model, replace(example, x=example.x * unit), scaled), ask(model, example))


@pytest.mark.parametrize("encoder", ["cells", "rows"])
@pytest.mark.parametrize("unit", [2.0**-20, 2.0**-40, 2.0**-70])
def test_the_unit_of_an_outcome_does_not_matter(encoder, unit):
    model, example = tiny_model(encoder, "continuous", 3), draw_example("continuous", 3)
    c = example.context
    with torch.no_grad():
        plain, small = (
            predictive(model.query(memory, example.x, example.a), memory)
            for memory in (model.condition(c), model.condition(replace(c, y=c.y * unit)))
        )
    close(small.mean / unit, plain.mean)
    close(small.quantile(0.9) / unit, plain.quantile(0.9))

"""The CNP-like and the MAML-like model keep the properties that make a model usable in L2M's place."""

import pytest
import torch

from l2m_core.learn.losses import PredictorLoss, context_of
from l2m_core.learn.policy import PolicyConfig, PolicyLoss
from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.methods.cnp import PooledCells, PooledRows
from l2m_core.methods.maml import POLICY, PREDICTION, InnerUpdates
from l2m_core.model.interface import Context, ModelConfig
from l2m_core.tasks.registry import build_prior


def inner_updates(backbone):
    """As the study has it: on what the CNP-like model makes of the context."""

    def make(config: ModelConfig):
        return InnerUpdates(config, backbone=backbone)

    make.__name__ = f"InnerUpdates_{backbone.__name__}"
    return make


INNER = (inner_updates(PooledCells), inner_updates(PooledRows), InnerUpdates)
KINDS = (PooledCells, PooledRows, *INNER)


def make(kind, outcome: str = "classes"):
    torch.manual_seed(0)
    model = kind(
        ModelConfig(layers=2, width=16, heads=2, feedforward=16, max_classes=3, bins=8, features=4, outcome=outcome)
    )
    for parameter in model.parameters():  # zero-initialised outputs would hide every difference
        if (parameter == 0).all():
            torch.nn.init.normal_(parameter, std=0.3)
    batch = build_prior("bnn", {"outcome": outcome}).sample(torch.Generator().manual_seed(1), 2, 40, 4)
    return model, batch


def answer(model, context: Context, x, a):
    return model.query(model.condition(context), x, a).prediction


@pytest.mark.parametrize("outcome", ["classes", "continuous"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_hidden_value_never_matters(kind, outcome):
    model, batch = make(kind, outcome)
    context, x = context_of(batch, 30), batch.x[:, 30:]
    a = torch.rand(x.shape, generator=torch.Generator().manual_seed(2)) < 0.5
    changed = torch.where(a, x, x + 5)
    assert torch.allclose(answer(model, context, x, a), answer(model, context, changed, a))


@pytest.mark.parametrize("kind", KINDS)
def test_queries_do_not_read_each_other(kind):
    model, batch = make(kind)
    context, x = context_of(batch, 30), batch.x[:, 30:]
    a = torch.ones_like(x, dtype=torch.bool)
    assert torch.allclose(answer(model, context, x, a)[:, :3], answer(model, context, x[:, :3], a[:, :3]), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_context_matters(kind):
    model, batch = make(kind)
    context, x = context_of(batch, 30), batch.x[:, 30:]
    other = Context(context.x, context.r, 1 - context.y, context.n_classes, context.categorical)
    a = torch.ones_like(x, dtype=torch.bool)
    assert not torch.allclose(answer(model, context, x, a), answer(model, other, x, a), atol=1e-4)


@pytest.mark.parametrize("kind", [PooledCells, PooledRows])
def test_a_pool_s_size_does_not_grow_with_the_context_and_its_order_does_not_matter(kind):
    model, batch = make(kind)
    context = context_of(batch, 30)
    short = model.condition(context_of(batch, 10))
    assert model.condition(context).nbytes == short.nbytes
    order = torch.randperm(30, generator=torch.Generator().manual_seed(3))
    turned = Context(
        context.x[:, order], context.r[:, order], context.y[:, order], context.n_classes, context.categorical
    )
    a = torch.ones_like(batch.x[:, 30:], dtype=torch.bool)
    assert torch.allclose(
        answer(model, context, batch.x[:, 30:], a), answer(model, turned, batch.x[:, 30:], a), atol=1e-5
    )


@pytest.mark.parametrize("kind", INNER)
def test_inner_steps_adapt_both_heads_to_the_task(kind):
    model, batch = make(kind)
    context, x, a = context_of(batch, 30), batch.x[:, 30:], batch.r[:, 30:]
    memory = model.condition(context)
    adapted = model.query(memory, x, a)
    plain = model.backbone.query(model.backbone.condition(context), x, a)
    assert any(name.startswith(PREDICTION) for name in memory.extras) and not torch.allclose(
        adapted.prediction, plain.prediction
    )
    assert any(name.startswith(POLICY) for name in memory.extras) and not torch.allclose(adapted.policy, plain.policy)


@pytest.mark.parametrize("kind", INNER)
def test_who_only_predicts_pays_for_no_steps_of_the_policy(kind):
    model, batch = make(kind)
    memory = model.condition(context_of(batch, 30), rank=False)
    assert memory.extras and not any(name.startswith(POLICY) for name in memory.extras)


def test_inner_steps_lower_the_loss_that_they_descend():
    model, batch = make(InnerUpdates)
    with torch.no_grad():
        model.rates.fill_(-4.0)
    losses = {}
    for steps in (0, 3):
        model.steps = steps
        # Asked about the very rows that the head adapted to: the second half of the context.
        context = context_of(batch, 40)
        memory = model.condition(context)
        seen = slice(20, 40)
        logits = model.query(memory, batch.x[:, seen], batch.r[:, seen]).prediction
        losses[steps] = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.y[:, seen].flatten()).item()
    assert losses[3] < losses[0]


def test_a_task_s_head_does_not_depend_on_the_other_tasks_of_its_batch():
    model, batch = make(InnerUpdates)
    together = model.condition(context_of(batch, 30))
    torch.manual_seed(0)
    alone = model.adapt(context_of(batch, 30))
    assert alone
    for name, value in alone.items():
        assert torch.allclose(together.extras[name], value, atol=1e-6)
    other = batch.map(lambda t: torch.stack([t[0], t[0]]))
    first = model.condition(context_of(other, 30))
    for name, value in together.extras.items():
        assert torch.allclose(first.extras[name][0], value[0], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_conditioning_works_in_inference_mode(kind):
    model, batch = make(kind)
    model.requires_grad_(False)
    a = torch.ones_like(batch.x[:, 30:], dtype=torch.bool)
    with torch.inference_mode():
        inside = answer(model, context_of(batch, 30), batch.x[:, 30:], a)
    assert torch.allclose(inside, answer(model, context_of(batch, 30), batch.x[:, 30:], a), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fresh_model_comes_to_read_its_context(kind):
    """Zero-initialised outputs must not be a place that training cannot leave."""
    torch.manual_seed(0)
    model = kind(ModelConfig(layers=2, width=16, heads=2, feedforward=16, max_classes=2, bins=8, features=4))
    stage = Stage(steps=30, tasks=4, rows=(32,), features=(4,), continuous=0.0)
    stream = EpisodeStream({"classes": build_prior("bnn", {})}, (stage,), 0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_module = PredictorLoss(model)
    for step in range(30):
        optimiser.zero_grad()
        loss_module(stream.episode(step))[0].backward()
        optimiser.step()
    batch = build_prior("bnn", {}).sample(torch.Generator().manual_seed(1), 2, 40, 4)
    context, x = context_of(batch, 30), batch.x[:, 30:]
    other = Context(context.x, context.r, 1 - context.y, context.n_classes, context.categorical)
    a = torch.ones_like(x, dtype=torch.bool)
    assert not torch.allclose(answer(model, context, x, a), answer(model, other, x, a), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_training_reaches_every_part(kind):
    model, _ = make(kind)
    stage = Stage(steps=1, tasks=2, rows=(24,), features=(4,), continuous=0.0)
    episode = EpisodeStream({"classes": build_prior("bnn", {})}, (stage,), 0).episode(0)
    loss, _ = PredictorLoss(model)(episode)
    loss.backward()
    unused = ("policy", "gain", "density", "outcome_value", "outcome_unknown", "thinking")  # of a predictor
    for name, parameter in model.named_parameters():
        if not any(part in name for part in unused):
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", INNER)
def test_training_the_policy_reaches_its_head_through_the_steps(kind):
    model, _ = make(kind)
    stage = Stage(steps=1, tasks=2, rows=(24,), features=(4,), known=(0.0, 0.4), continuous=0.0)
    episode = EpisodeStream({"classes": build_prior("bnn", {})}, (stage,), 0).episode(0)
    loss, _ = PolicyLoss(model, PolicyConfig("greedy", temperature=0.5, samples=1))(episode)
    loss.backward()
    for name, parameter in model.named_parameters():
        if name.startswith("backbone.policy") or name == "policy_rates":
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name

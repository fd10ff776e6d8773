"""L2M has the same three verbs as every other method, and the base rate knows nothing but the outcome."""

import numpy as np
import pytest
import torch

from l2m_core.acquire.rollout import roll_out
from l2m_core.answering.release import Release
from l2m_core.cohort import Cohort
from l2m_core.memory import L2M
from l2m_core.methods.interface import Method, make_method
from l2m_core.methods.l2m import BaseRate, L2MMethod
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.tabular.predictions import Gaussian


@pytest.fixture(scope="module")
def model() -> L2M:
    torch.manual_seed(0)
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16, bins=16)
    module = build_model(config)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return L2M(Release("tiny", module.eval().requires_grad_(False), config, fingerprint="tiny"))


def cohort(kind: str = "binary") -> Cohort:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 4)).astype(np.float32)
    x[::6, 2] = np.nan
    y = x[:, 1] if kind == "continuous" else (x[:, 1] > 0).astype(int)
    return Cohort.from_arrays(x, y, kind=kind, acquirable=[False, True, True, True])


def test_all_three_are_methods(model):
    assert isinstance(L2MMethod(model=model), Method) and isinstance(BaseRate(), Method)
    assert isinstance(make_method("base_rate"), BaseRate)


@pytest.mark.parametrize("policy", [None, "learned", "random", "monte carlo"])
def test_a_method_answers_as_its_memory_does(model, policy):
    context = cohort()
    method = L2MMethod(model=model, policy=policy).fit(context)
    memory = model.condition(context)
    a = np.random.default_rng(1).random(context.x.shape) < 0.5
    shown = np.where(a, context.x, np.nan)
    assert method.predict(context.x, a) == pytest.approx(memory.predict(shown))
    scores = method.rank(context.x, a)
    assert (scores[a] == -np.inf).all() and (scores[:, 0] == -np.inf).all()
    assert np.isfinite(scores[:, 1:][~a[:, 1:]]).all()


def test_values_that_were_not_measured_never_matter(model):
    context = cohort()
    method = L2MMethod(model=model).fit(context)
    a = np.random.default_rng(1).random(context.x.shape) < 0.5
    other = np.where(a, context.x, 99.0).astype(np.float32)
    assert method.predict(context.x, a) == pytest.approx(method.predict(other, a))
    assert np.array_equal(method.rank(context.x, a), method.rank(other, a))


def test_a_random_order_follows_the_seed(model):
    context = cohort()
    a = np.zeros(context.x.shape, dtype=bool)
    ranks = [L2MMethod(seed=seed, model=model, policy="random").fit(context).rank(context.x, a) for seed in (1, 1, 2)]
    assert np.array_equal(ranks[0], ranks[1]) and not np.array_equal(ranks[0], ranks[2])


def test_a_memory_that_is_there_already_serves(model):
    context = cohort()
    memory = model.condition(context)
    method = L2MMethod(model=model).use(memory)
    none = np.zeros(context.x.shape, dtype=bool)
    none[:, 0] = True
    rollout = roll_out(memory, context.x, budget=1)
    scores = np.where(np.isnan(context.x), -np.inf, method.rank(context.x, none))
    assert (rollout.actions[:, 0] == scores.argmax(1)).all()


def test_the_base_rate_is_the_context_s_own():
    context = cohort()
    method = BaseRate().fit(context)
    p = method.predict(context.x, context.r)
    assert p == pytest.approx(np.tile(np.bincount(context.y) / 60, (60, 1)))
    numbers = BaseRate().fit(cohort("continuous")).predict(context.x, context.r)
    assert isinstance(numbers, Gaussian)
    assert numbers.mean[0] == pytest.approx(cohort("continuous").y.mean())
    assert (method.rank(context.x, context.r)[context.r] == -np.inf).all()

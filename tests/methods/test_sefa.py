"""SEFA: latents of each feature's own, and scores by how much the outcome hangs on them."""

import numpy as np
import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.methods import make_method
from l2m_core.methods.networks import Schedule
from tests.methods.cohorts import LEVELS, STRONG, WEAK, learnable

QUICK = {"pretraining": Schedule(epochs=30, patience=10, least_steps=6), "training_samples": 20, "samples": 50}


@pytest.fixture(scope="module")
def method():
    return make_method("sefa", **QUICK).fit(learnable("binary", rows=400))


@pytest.fixture
def patients():
    x = learnable("binary", rows=12, missing=0.0, seed=3).x
    a = np.zeros_like(x, dtype=bool)
    a[:, WEAK] = True
    return x, a


def inputs(method, x, a):
    return torch.from_numpy(method.encoding.masked(x, a))


def test_the_strongest_test_is_asked_for_first(method, patients):
    x, a = patients
    assert (method.rank(x, a).argmax(1) == STRONG).mean() > 0.9


def test_a_feature_s_latents_hang_on_that_feature_alone(method, patients):
    x, a = patients
    a[:] = True
    mean, std = method.stochastic.encoder(inputs(method, x, a))
    other = x.copy()
    other[:, STRONG] += 1.0
    other[:, LEVELS] = (other[:, LEVELS] + 1) % 4
    moved, spread = method.stochastic.encoder(inputs(method, other, a))
    changed = ((mean - moved).abs() + (std - spread).abs()).amax((0, 2)) > 1e-6
    assert changed.nonzero().flatten().tolist() == [STRONG, LEVELS]


def test_scores_are_those_of_the_published_definition(method, patients):
    x, a = patients
    asked = inputs(method, x[:3], a[:3])
    expected = np.zeros((3, x.shape[1]))
    with torch.no_grad():
        latents = method.stochastic.sample(asked)
    for row in range(3):
        p = torch.stack([method.stochastic.decoder(z.flatten()[None])[0].softmax(-1) for z in latents[:, row]])
        for z in latents[:, row]:
            slope = torch.autograd.functional.jacobian(
                lambda z: method.stochastic.decoder(z.flatten()[None])[0].softmax(-1), z
            )  # (K, d, latents)
            length = slope.norm(dim=-1)
            expected[row] += (p.mean(0) @ (length / length.sum(1, keepdim=True))).detach().numpy() / len(latents)
    is_open = method.acquirable & ~a[:3]
    np.testing.assert_allclose(method.rank(x[:3], a[:3])[is_open], expected[is_open], atol=1e-5)


def test_a_row_s_answer_does_not_hang_on_who_is_asked_about_beside_it(method, patients):
    x, a = patients
    np.testing.assert_allclose(method.rank(x[:1], a[:1]), method.rank(x, a)[:1], atol=1e-6)
    np.testing.assert_allclose(method.predict(x[:1], a[:1]), method.predict(x, a)[:1], atol=1e-6)
    assert method.rank(x[:0], a[:0]).shape == (0, 6)


def test_a_larger_beta_lets_latents_tell_less(patients):
    x, a = patients
    told = {}
    for beta in (0.0, 1.0):
        made = make_method("sefa", **QUICK, beta=beta).fit(learnable("binary"))
        told[beta] = float(made.stochastic.encoder.told(inputs(made, x, a)).detach().mean())
    assert 0 < told[1.0] < 0.5 * told[0.0]


@pytest.mark.parametrize("wrong", [{"latents": 0}, {"beta": -0.1}, {"training_samples": 0}, {"samples": 0}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ConfigError, match="at least 1 of each"):
        make_method("sefa", **wrong)

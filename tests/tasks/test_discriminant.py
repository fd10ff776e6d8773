"""The discriminant prior's answers: what a context tells of queries, with the classes' middles integrated out."""

from dataclasses import replace

import torch

from l2m_core.tasks.best_answers import with_answers
from l2m_core.tasks.class_order import coded_by_frequency
from l2m_core.tasks.registry import build_prior

CONTEXT = 60


def drawn(seed: int, tasks: int = 40, rows: int = 160, features: int = 6, **settings):
    return build_prior("discriminant", settings).sample(torch.Generator().manual_seed(seed), tasks, rows, features)


def answers(batch, share: float, context: int = CONTEXT):
    recorded = batch.r[:, context:]
    known = recorded & (torch.rand(recorded.shape, generator=torch.Generator().manual_seed(5)) < share)
    return with_answers(batch, context, known, torch.Generator()).truth.probabilities[:, context:]


def test_answers_are_calibrated():
    said, came = [], []
    for seed in range(5):
        batch = coded_by_frequency(drawn(seed, max_classes=4), CONTEXT)
        p = batch.truth.probabilities[:, CONTEXT:, :2]
        said.append(answers(batch, 0.6)[..., :2].flatten())
        came.append(p.flatten())
    said, came = torch.cat(said), torch.cat(came)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        within = (said >= low) & (said < low + 0.2)
        assert abs(float((came - said)[within].mean())) < 0.04


def test_answers_are_those_of_many_draws_of_the_middles():
    batch = drawn(3, tasks=5, rows=12, features=1, max_classes=2, apart=(0.5, 1.5), informative=(1.0, 1.0))
    batch = replace(batch, r=torch.ones_like(batch.r))
    form, context = batch.truth.form, 8
    said = answers(batch, 1.1, context)[..., 1]
    middles = torch.randn(100_000, 2, generator=torch.Generator().manual_seed(0))
    for task in range(5):
        at = form.spread[task, 0] * middles  # (M, 2)
        z, y, width = form.z[task, :, 0], batch.y[task], form.covariance[task, 0, 0]
        likelihood = -0.5 * (z[None, :, None] - at[:, None]).square() / width  # (M, N, 2)
        weight = likelihood[:, torch.arange(context), y[:context]].sum(1).softmax(0)  # (M,)
        share = torch.bincount(y[:context], minlength=2) + form.evenness[task]
        density = (weight[:, None, None] * likelihood[:, context:].exp()).sum(0) * share
        torch.testing.assert_close(said[task], density[:, 1] / density.sum(1), atol=0.02, rtol=0)


def test_a_class_that_a_task_lacks_is_impossible():
    batch = drawn(4)
    absent = torch.arange(batch.truth.probabilities.shape[2]) >= batch.n_classes[:, None]
    assert absent.any() and float(answers(batch, 0.5).amax(1)[absent].max()) == 0.0

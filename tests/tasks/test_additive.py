"""The additive prior's answers: what a context tells of queries, with the weights integrated out."""

from dataclasses import replace

import pytest
import torch

from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.tasks.best_answers import with_answers
from l2m_core.tasks.registry import build_prior

CONTEXT = 60


def drawn(seed: int, tasks: int = 40, rows: int = 160, features: int = 6, **settings):
    return build_prior("additive", settings).sample(torch.Generator().manual_seed(seed), tasks, rows, features)


def known(batch, share: float, context: int = CONTEXT):
    generator = torch.Generator().manual_seed(5)
    return batch.r[:, context:] & (torch.rand(batch.r[:, context:].shape, generator=generator) < share)


def answers(batch, share: float, context: int = CONTEXT):
    answered = with_answers(batch, context, known(batch, share, context), torch.Generator().manual_seed(6))
    return answered.truth.probabilities[:, context:, 1]


def test_answers_are_calibrated_however_much_is_known():
    said, came = [], []
    for seed in range(6):
        batch = drawn(seed)
        said.append(answers(batch, 0.5))
        came.append(batch.truth.probabilities[:, CONTEXT:, 1])
    said, came = torch.cat(said), torch.cat(came)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        within = (said >= low) & (said < low + 0.2)
        # 240 tasks of their own weights: rows of one task err together.
        assert abs(float((came - said)[within].mean())) < 0.04


def test_a_long_context_tells_the_weights():
    batch = drawn(12, tasks=6, rows=2100, features=4, chart_share=1.0, wave_share=0.0)
    batch = replace(batch, r=torch.ones_like(batch.r))
    truth = batch.truth.probabilities[:, 2000:, 1]
    short = with_answers(batch, 40, known(batch, 1.1, 40), torch.Generator().manual_seed(0))
    long = answers(batch, 1.1, 2000)
    assert (long - truth).abs().mean() < 0.04 < (short.truth.probabilities[:, 2000:, 1] - truth).abs().mean()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_draws_of_a_continuous_outcome_have_its_distribution(share):
    batch = drawn(13, tasks=80, outcome="continuous")
    answered = with_answers(batch, CONTEXT, known(batch, share), torch.Generator().manual_seed(7))
    draws, y = answered.truth.draws[:, CONTEXT:], batch.y[:, CONTEXT:, None]
    assert answered.truth.draws[:, :CONTEXT].isnan().all() and draws.isfinite().all()
    below = (draws < y).float().mean(-1)  # uniform, if the draws have the outcome's distribution
    assert abs(float(below.mean()) - 0.5) < 0.03
    for level in (0.1, 0.25, 0.75, 0.9):
        assert abs(float((below <= level).float().mean()) - level) < 0.04


def test_a_stream_teaches_answers_of_queries_and_follows_from_its_seed():
    def episode():
        prior = build_prior("mixture", {"by": "batch", "parts": [{"prior": "additive"}]})
        stage = Stage(steps=8, tasks=3, rows=(40,), features=(5,), context=(0.5,), continuous=0.0)
        return EpisodeStream({"classes": prior}, (stage,), 3, by_frequency=True).episode(2)

    first, again = episode(), episode()
    p = first.tasks.truth.probabilities
    assert torch.equal(p, again.tasks.truth.probabilities)
    torch.testing.assert_close(p.sum(-1), torch.ones(3, 40))
    # With nothing known of two queries, the context tells the same of both; the truth does not.
    blank = with_answers(first.tasks, 20, torch.zeros_like(first.a), torch.Generator().manual_seed(1))
    spread = blank.truth.probabilities[:, 20:, 1].std(1)
    assert (spread < 0.5 * drawn(1, 3).truth.probabilities[..., 1].std(1).mean()).all()

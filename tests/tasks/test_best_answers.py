"""What every prior owes whose best answers are known."""

import pytest
import torch

from l2m_core.tasks.best_answers import with_answers
from l2m_core.tasks.registry import build_prior

CONTEXT = 60


def expected_loss(said, truth):
    return float(-(truth * said.clamp_min(1e-6).log()).sum(-1).mean())


@pytest.mark.parametrize("name", ["additive", "discriminant"])
def test_more_that_is_known_is_answered_better_and_never_better_than_the_truth(name):
    batch = build_prior(name).sample(torch.Generator().manual_seed(11), 40, 160, 6)
    truth, recorded = batch.truth.probabilities[:, CONTEXT:], batch.r[:, CONTEXT:]

    def loss(share):
        known = recorded & (torch.rand(recorded.shape, generator=torch.Generator().manual_seed(5)) < share)
        answered = with_answers(batch, CONTEXT, known, torch.Generator().manual_seed(6))
        return expected_loss(answered.truth.probabilities[:, CONTEXT:], truth)

    assert expected_loss(truth, truth) < loss(1.1) < loss(0.5) < loss(0.0)


def test_tasks_of_other_priors_stay_as_they_are():
    batch = build_prior("synthetic").sample(torch.Generator().manual_seed(0), 3, 40, 5)
    assert with_answers(batch, 20, batch.r[:, 20:], torch.Generator()) is batch

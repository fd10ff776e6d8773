"""What the predictor is taught: outcomes by their truth or as drawn, and results that are not yet known."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from l2m_core.learn.losses import PredictorLoss, context_of, log_loss, soft_log_loss
from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.tasks.batch import Truth
from l2m_core.tasks.registry import build_prior
from tests.learn.examples import shaken_model, stream


@pytest.fixture
def asked():
    """An episode with classes, the model's answers and its memory."""
    episode = stream(stages=(Stage(steps=1, tasks=6, rows=(40,), features=(4,), continuous=0.0),)).episode(0)
    model, n = shaken_model(max_classes=4), episode.context
    memory = model.condition(context_of(episode.tasks, n))
    return episode, model.query(memory, episode.tasks.x[:, n:], episode.a), memory


def with_truth(tasks, probabilities):
    return replace(tasks, truth=Truth(probabilities=probabilities))


def test_a_certain_truth_counts_as_the_drawn_class(asked):
    episode, output, memory = asked
    certain = torch.nn.functional.one_hot(episode.tasks.y, 2).float()
    soft = soft_log_loss(output, memory, with_truth(episode.tasks, certain), episode.context)
    torch.testing.assert_close(soft, log_loss(output, memory, episode.tasks.y[:, episode.context :]))


def test_an_uncertain_truth_counts_as_the_mean_over_draws(asked):
    episode, output, memory = asked
    p = torch.rand(*episode.tasks.y.shape, 2).softmax(-1)
    soft = soft_log_loss(output, memory, with_truth(episode.tasks, p), episode.context)
    n, zeros = episode.context, torch.zeros_like(episode.tasks.y[:, episode.context :])
    mean = p[:, n:, 0] * log_loss(output, memory, zeros) + p[:, n:, 1] * log_loss(output, memory, zeros + 1)
    torch.testing.assert_close(soft, mean)


def test_a_task_without_a_truth_counts_by_its_drawn_class(asked):
    episode, output, memory = asked
    hard = log_loss(output, memory, episode.tasks.y[:, episode.context :])
    unknown = torch.full((*episode.tasks.y.shape, 2), float("nan"))
    torch.testing.assert_close(soft_log_loss(output, memory, with_truth(episode.tasks, unknown), episode.context), hard)
    torch.testing.assert_close(soft_log_loss(output, memory, replace(episode.tasks, truth=None), episode.context), hard)


def test_foreseen_results_are_learned_beside_the_outcome():
    episode = stream(stages=(Stage(steps=1, tasks=6, rows=(40,), features=(4,), known=(0.2, 0.6)),)).episode(0)
    model = shaken_model(value_bins=5)
    plain, _ = PredictorLoss(model)(episode)
    loss, report = PredictorLoss(model, value_weight=0.5)(episode)
    torch.testing.assert_close(loss.detach(), plain.detach() + 0.5 * report["value"])
    loss.backward()
    assert model.value.out.weight.grad.abs().sum() > 0
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimiser.zero_grad()
        PredictorLoss(model, value_weight=1.0)(episode)[0].backward()
        optimiser.step()
    assert PredictorLoss(model, value_weight=1.0)(episode)[1]["value"] < min(0.0, float(report["value"]))


def test_the_crps_counts_beside_the_log_loss_of_a_continuous_outcome_only():
    model, shape = shaken_model(), {"steps": 1, "tasks": 6, "rows": (40,), "features": (4,)}
    for continuous in (0.0, 1.0):
        episode = stream(stages=(Stage(**shape, continuous=continuous),)).episode(0)
        plain, _ = PredictorLoss(model, soft=True)(episode)
        loss, report = PredictorLoss(model, soft=True, crps_weight=2.0)(episode)
        assert ("crps" in report) == bool(continuous)
        torch.testing.assert_close(loss, plain + 2.0 * report.get("crps", torch.zeros(())))


def additive_episode():
    stage = Stage(steps=1, tasks=6, rows=(40,), features=(4,), continuous=0.0)
    return EpisodeStream({"classes": build_prior("additive")}, (stage,), 0).episode(0)


def test_an_earlier_model_is_held_to_where_no_best_answer_is_known():
    episode = stream(stages=(Stage(steps=1, tasks=6, rows=(40,), features=(4,), continuous=0.0),)).episode(0)
    model, other = shaken_model(value_bins=5), shaken_model(seed=1, value_bins=5)
    same, _ = PredictorLoss(model, True, 0.5, deepcopy(model))(episode)
    apart, _ = PredictorLoss(model, True, 0.5, other)(episode)
    assert abs(float(same.detach())) < 1e-6 < 0.01 < float(apart.detach())


def test_best_answers_are_taught_whatever_an_earlier_model_says():
    episode, model = additive_episode(), shaken_model()
    plain, _ = PredictorLoss(model, soft=True)(episode)
    held = PredictorLoss(model, True, 0.5, shaken_model(seed=1))
    torch.testing.assert_close(held(episode)[0], plain)
    assert len(list(held.parameters())) == len(list(model.parameters()))

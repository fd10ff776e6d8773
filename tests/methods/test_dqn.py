"""What the Q-network learns from: its replay, its rewards, its target network."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.methods import make_method
from l2m_core.methods.dqn import DQN, REWARDS, Replay
from l2m_core.methods.masked import Walks
from l2m_core.methods.networks import ApartDuelingNetwork, DuelingNetwork, Schedule
from l2m_core.methods.study import study_settings
from l2m_core.tabular.preparation import prepare
from tests.methods.cohorts import STRONG, WEAK, learnable

ONCE = Schedule(epochs=2)


def make(**settings) -> DQN:
    return make_method("dqn", **{"pretraining": ONCE, "episodes": 3, "updates": 1, **settings})  # type: ignore[return-value]


def walks(actions: list[list[int]]) -> Walks:
    """One row for each list of features, asked for in that order."""
    order = torch.tensor(actions).T  # (T, n)
    states = torch.zeros((len(order) + 1, order.shape[1], 4), dtype=torch.bool)
    for step, chosen in enumerate(order):
        states[step + 1] = states[step].scatter(1, chosen[:, None], True)
    return Walks(states, order, torch.ones_like(order, dtype=torch.bool))


def test_the_replay_keeps_the_latest_transitions():
    replay = Replay.empty(5, 4)
    for row in range(4):
        replay.add(torch.tensor([row]), walks([[1, 2]]))
    assert replay.added == 8 and sorted(replay.row.tolist()) == [1, 2, 2, 3, 3]
    assert replay.sample(1000, np.random.default_rng(0)).unique().tolist() == [0, 1, 2, 3, 4]


def test_a_transition_knows_its_state_its_action_and_whether_it_was_the_last():
    replay = Replay.empty(10, 4)
    replay.add(torch.tensor([7, 8]), walks([[1, 2], [3, 0]]))
    assert replay.row[:4].tolist() == [7, 8, 7, 8] and replay.action[:4].tolist() == [1, 3, 2, 0]
    assert replay.last[:4].tolist() == [False, False, True, True]
    assert replay.a[:4].int().tolist() == [[0] * 4, [0] * 4, [0, 1, 0, 0], [0, 0, 0, 1]]


def test_values_of_actions_are_the_state_s_value_and_advantages_of_mean_zero():
    network = DuelingNetwork(3, 4, torch.Generator().manual_seed(0))
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    value = super(DuelingNetwork, network).forward(z)[:, :1]
    torch.testing.assert_close(network(z).mean(1, keepdim=True), value)


def test_values_and_advantages_may_have_networks_of_their_own():
    network = ApartDuelingNetwork(3, 4, torch.Generator().manual_seed(0))
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(network(z).mean(1, keepdim=True), network.value(z))
    assert tuple(network.advantage.weights[-1].shape) == (4, 128) and tuple(network.value.weights[-1].shape) == (1, 128)


def test_the_study_s_q_learning_takes_the_largest_value_of_the_target_network_and_leaves_the_predictor_alone():
    context = learnable("binary", rows=60, missing=0.0)
    method = make(**{**study_settings("dqn"), "episodes": 2, "pretraining": Schedule(epochs=2)}).fit(context)
    rows = method.encode(prepare(context)).take(np.arange(1))
    replay = Replay(
        torch.zeros(1, dtype=torch.long), rows.start, torch.tensor([STRONG]), torch.tensor([False]), added=1
    )
    target = ApartDuelingNetwork(method.n_inputs, 6, torch.Generator().manual_seed(5))
    after = rows.start.clone()
    after[0, STRONG] = True
    with torch.no_grad():
        loss = method.loss(rows, replay, torch.zeros(1, dtype=torch.long), target)
        likelihood = [-method.head.losses(method.predictor(rows.inputs(a)), rows.target) for a in (rows.start, after)]
        ahead = target(rows.inputs(after)).masked_fill(~rows.open(after), -torch.inf).max()
        error = method.q_network(rows.inputs(rows.start))[:, STRONG] - (likelihood[1] + 0.9 * ahead)
    huber = torch.where(error.abs() < 1, 0.5 * error**2, error.abs() - 0.5)
    torch.testing.assert_close(loss, huber.mean() - 0.5 * (likelihood[0] + likelihood[1]).mean())
    alone = make(**{**study_settings("dqn"), "episodes": 1, "pretraining": Schedule(epochs=2)}).fit(context)
    for name, weight in method.predictor.state_dict().items():
        torch.testing.assert_close(weight, alone.predictor.state_dict()[name])


def test_the_target_network_is_renewed_every_fourth_episode(monkeypatch):
    renewed: list[int] = []
    load = DuelingNetwork.load_state_dict
    monkeypatch.setattr(DuelingNetwork, "load_state_dict", lambda self, state: renewed.append(1) or load(self, state))
    make(episodes=9).fit(learnable("binary", rows=60))
    assert len(renewed) == 3  # before the episodes 1, 5 and 9


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("last", [True, False])
def test_what_is_wanted_is_the_reward_and_the_discounted_value_ahead(last, reward):
    """The reward is the log likelihood after the action, or what the action adds to it, under the predictor as it is
    now."""
    context = learnable("binary", rows=60, missing=0.0)
    method = make(dropout=0.0, reward=reward).fit(context)
    rows = method.encode(prepare(context)).take(np.arange(1))
    before = rows.start
    after, both = before.clone(), before.clone()
    after[0, STRONG] = both[0, [STRONG, WEAK]] = True
    replay = Replay(torch.zeros(1, dtype=torch.long), before, torch.tensor([STRONG]), torch.tensor([last]), added=1)
    target = DuelingNetwork(method.n_inputs, 6, torch.Generator().manual_seed(5))
    with torch.no_grad():
        loss = method.loss(rows, replay, torch.zeros(1, dtype=torch.long), target)
        likelihood = [-method.head.losses(method.predictor(rows.inputs(a)), rows.target) for a in (before, after)]
        open_after = method.q_network(rows.inputs(after)).masked_fill(~rows.open(after), -torch.inf)
        ahead = 0.0 if last else 0.9 * target(rows.inputs(after))[0, open_after.argmax()]
        wanted = likelihood[1] - (likelihood[0] if reward == "gain" else 0.0) + ahead
        error = method.q_network(rows.inputs(before))[:, STRONG] - wanted
    huber = torch.where(error.abs() < 1, 0.5 * error**2, error.abs() - 0.5)
    torch.testing.assert_close(loss, huber.mean() - 0.5 * (likelihood[0] + likelihood[1]).mean())


def test_a_row_with_nothing_left_to_ask_for_has_nothing_ahead():
    """Though its walk may have steps left: a value ahead would be one of features that the row lacks."""
    context = learnable("binary", rows=60, missing=0.0)
    method = make(dropout=0.0).fit(context)
    rows = method.encode(prepare(context)).take(np.arange(1))
    before = rows.r.clone()
    before[0, STRONG] = False
    one, none = torch.zeros(1, dtype=torch.long), torch.tensor([False])
    target = DuelingNetwork(method.n_inputs, 6, torch.Generator().manual_seed(5))
    with torch.no_grad():
        found = [
            float(method.loss(rows, Replay(one, before, torch.tensor([STRONG]), last, 1), one, target))
            for last in (none, ~none)
        ]
    assert found[0] == found[1]


def test_the_reward_is_the_log_likelihood_unless_told_otherwise():
    assert make().reward == "log likelihood"
    with pytest.raises(ConfigError, match="'loss'.*gain"):
        make(reward="loss")

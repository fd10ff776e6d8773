"""A dueling double deep Q-network over acquisitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from l2m_core.errors import ConfigError
from l2m_core.methods.interface import register
from l2m_core.methods.masked import PredictorSettings, RankingNetworkMethod, Rows, Walks, walk
from l2m_core.methods.networks import ApartDuelingNetwork, DuelingNetwork, Schedule, gradient_step, train

REWARDS = ("log likelihood", "gain")


@dataclass
class Replay:
    """The latest transitions. A row's values never change, so its index and mask are the whole state."""

    row: Tensor
    """(capacity,)"""
    a: Tensor
    """(capacity, d) bool: before the step"""
    action: Tensor
    """(capacity,)"""
    last: Tensor
    """(capacity,) bool: the walk ended with this step"""
    added: int = 0

    @classmethod
    def empty(cls, capacity: int, n_features: int) -> Replay:
        return cls(
            torch.zeros(capacity, dtype=torch.long),
            torch.zeros((capacity, n_features), dtype=torch.bool),
            torch.zeros(capacity, dtype=torch.long),
            torch.zeros(capacity, dtype=torch.bool),
        )

    def add(self, index: Tensor, walks: Walks) -> None:
        """index: (n,) the walks' rows"""
        steps = walks.actions.shape[0]
        moved = walks.moved.flatten()
        last = torch.zeros_like(walks.moved)
        last[-1] = True
        slot = (self.added + torch.arange(int(moved.sum()))) % len(self.row)
        self.row[slot] = index.repeat(steps)[moved]
        self.a[slot] = walks.states[:-1].flatten(0, 1)[moved]
        self.action[slot] = walks.actions.flatten()[moved]
        self.last[slot] = last.flatten()[moved]
        self.added += len(slot)

    def sample(self, size: int, random: np.random.Generator) -> Tensor:
        return torch.from_numpy(random.integers(min(self.added, len(self.row)), size=size))


@register("dqn")
class DQN(RankingNetworkMethod):
    """State [x⊙a, a]; reward log f(y | x⊙(a + j)) of the current predictor f; discount 0.9.

    The reward is the log likelihood after the acquisition, so values are mostly negative, the more so the more steps are
    left; an ended walk has nothing ahead. With reward "gain" it is what the acquisition adds to the log likelihood.

    An episode walks one batch of rows, ε-greedily, into a replay of 10,000 transitions and then learns from it:
    double Q-learning (the live network picks, the target network values), the predictor trained on along the same
    states. Rewards are worked out when replayed, so they always belong to the current predictor. The target network
    is renewed every 4 of 200 episodes. The best episode by the validation rows' loss along the greedy order is kept.
    """

    def __init__(
        self,
        *,
        episodes: int = 200,
        updates: int = 8,
        discount: float = 0.9,
        capacity: int = 10_000,
        target_every: int = 4,
        first_epsilon: float = 1.0,
        last_epsilon: float = 0.1,
        walkers: int = 64,
        replayed: int = 128,
        rate: float = 1e-3,
        reward: str = "log likelihood",
        double: bool = True,
        apart: bool = False,
        **predictor: Unpack[PredictorSettings],
    ):
        if reward not in REWARDS:
            raise ConfigError(f"DQN's reward is {reward!r}; choose one of {', '.join(REWARDS)}.")
        super().__init__(**predictor)
        self.episodes = episodes
        self.updates = updates
        """Gradient steps after each episode."""
        self.discount = discount
        self.capacity = capacity
        self.target_every = target_every
        self.first_epsilon = first_epsilon
        self.last_epsilon = last_epsilon
        """ε falls in a straight line over the first half of the episodes."""
        self.walkers = walkers
        """Rows walked in an episode."""
        self.replayed = replayed
        """Transitions in a gradient step."""
        self.rate = rate
        self.reward = reward
        self.double = double
        """Whether the live network picks the next action and the target network values it (double Q-learning). False: the
        target network's largest value."""
        self.apart = apart
        """Whether state values and advantages have networks of their own, rather than one with two outputs."""

    def _learn(self, rows: Rows, held: Rows) -> None:
        self._train_predictor(rows, held, self.pretraining)
        kind = ApartDuelingNetwork if self.apart else DuelingNetwork
        self.q_network: nn.Module = kind(self.n_inputs, self.n_actions, self.generator, self.hidden)
        target_network = kind(self.n_inputs, self.n_actions, self.generator, self.hidden)
        replay = Replay.empty(self.capacity, self.encoding.n_features)
        episode = 0

        def best(some: Rows, a: Tensor, open_actions: Tensor) -> Tensor:
            return self.q_network(some.inputs(a))

        def one_episode(optimizer: torch.optim.Optimizer) -> None:
            nonlocal episode
            # Targets from a copy that changes now and then: a network that chases its own estimates need not settle.
            if episode % self.target_every == 0:
                target_network.load_state_dict(self.q_network.state_dict())
            index = self.random.permutation(len(rows))[: self.walkers]
            replay.add(torch.from_numpy(index), self._explore(rows.take(index), self._epsilon(episode)))
            for _ in range(self.updates):
                drawn = replay.sample(self.replayed, self.random)
                gradient_step(optimizer, self.loss(rows, replay, drawn, target_network))
            episode += 1

        schedule = Schedule(epochs=self.episodes, rate=self.rate)
        shares = (1.0, self.predictor_share)
        train([self.q_network, self.predictor], one_episode, lambda: self._greedy_loss(held, best), schedule, shares)

    def _scores(self, inputs: Tensor) -> Tensor:
        return self.q_network(inputs)

    def _epsilon(self, episode: int) -> float:
        share = min(1.0, episode / max(1, self.episodes / 2))
        return self.first_epsilon + share * (self.last_epsilon - self.first_epsilon)

    def _explore(self, rows: Rows, epsilon: float) -> Walks:
        def choose(some: Rows, a: Tensor, open_actions: Tensor) -> Tensor:
            # ε-greedy by scores: the arg-max of uniform noise is a uniform draw among the open actions.
            noise = torch.rand(open_actions.shape, generator=self.generator)
            at_random = torch.rand((len(a), 1), generator=self.generator) < epsilon
            return torch.where(at_random, noise, self.q_network(some.inputs(a)))

        return walk(rows, choose, self.steps)

    def loss(self, rows: Rows, replay: Replay, drawn: Tensor, target_network: nn.Module) -> Tensor:
        """Of the value network and the predictor on some transitions. drawn: their slots in the replay.

        wanted = reward + γ Q_target(s', j), where j is the open action that Q values most (`double`), or Q_target itself.
        """
        some = rows.take(replay.row[drawn].numpy())
        a, action, last = replay.a[drawn], replay.action[drawn], replay.last[drawn]
        after = some.after(a, action)
        inputs, inputs_after = some.inputs(a), some.inputs(after)
        losses = self.head.losses(self.predictor(inputs), some.target)
        losses_after = self.head.losses(self.predictor(inputs_after), some.target)
        with torch.no_grad():
            open_after = some.open_actions(after)
            values = target_network(inputs_after)
            picking = self.q_network(inputs_after) if self.double else values
            chosen = picking.masked_fill(~open_after, -torch.inf).argmax(-1, keepdim=True)
            # Nothing lies ahead of the last step, or where nothing is left to ask for.
            ahead = values.gather(1, chosen)[:, 0] * (open_after.any(-1) & ~last)
            reward = -losses_after if self.reward == "log likelihood" else losses - losses_after
            wanted = reward + self.discount * ahead
        # Huber's loss bounds the gradient of rare large errors. The predictor learns from both states of each transition, at
        # half weight each.
        estimate = self.q_network(inputs).gather(1, action[:, None])[:, 0]
        return functional.smooth_l1_loss(estimate, wanted) + 0.5 * (losses.mean() + losses_after.mean())

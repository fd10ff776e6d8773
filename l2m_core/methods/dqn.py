"""A dueling double deep Q-network over acquisitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from l2m_core.errors import ConfigError
from l2m_core.methods.interface import register
from l2m_core.methods.masked import MaskedNetworkMethod, Rows, Walks, walk
from l2m_core.methods.networks import DuelingNetwork, Schedule, gradient_step, train

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
class DQN(MaskedNetworkMethod):
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
        seed: int = 0,
        hidden: int = 128,
        dropout: float = 0.3,
        most_steps: int = 10,
        predictor_share: float = 0.1,
        episodes: int = 200,
        updates: int = 8,
        discount: float = 0.9,
        capacity: int = 10_000,
        target_every: int = 4,
        first_epsilon: float = 1.0,
        last_epsilon: float = 0.1,
        walkers: int = 64,
        replayed: int = 128,
        pretraining: Schedule | None = None,
        rate: float = 1e-3,
        reward: str = "log likelihood",
    ):
        if reward not in REWARDS:
            raise ConfigError(f"DQN's reward is {reward!r}; choose one of {', '.join(REWARDS)}.")
        super().__init__(
            seed=seed, hidden=hidden, dropout=dropout, most_steps=most_steps, predictor_share=predictor_share
        )
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
        self.pretraining = pretraining or Schedule(epochs=150, plateau=5, patience=15, least_steps=8)
        self.rate = rate
        self.reward = reward

    def _learn(self, rows: Rows, held: Rows) -> None:
        self._train_predictor(rows, held, self.pretraining)
        self.q_network = DuelingNetwork(self.n_inputs, self.n_actions, self.generator, self.hidden)
        target_network = DuelingNetwork(self.n_inputs, self.n_actions, self.generator, self.hidden)
        replay = Replay.empty(self.capacity, self.encoding.n_features)
        episode = 0

        def best(some: Rows, a: Tensor, open_actions: Tensor) -> Tensor:
            return self.q_network(some.inputs(a))

        def one_episode(optimizer: torch.optim.Optimizer) -> None:
            nonlocal episode
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
            noise = torch.rand(open_actions.shape, generator=self.generator)
            at_random = torch.rand((len(a), 1), generator=self.generator) < epsilon
            return torch.where(at_random, noise, self.q_network(some.inputs(a)))

        return walk(rows, choose, self.steps)

    def loss(self, rows: Rows, replay: Replay, drawn: Tensor, target_network: DuelingNetwork) -> Tensor:
        """Of the value network and the predictor on some transitions. drawn: their slots in the replay.

        The live network picks the next action and the target network values it (double Q-learning):
        wanted = reward + γ Q_target(s', argmax_j Q(s', j)).
        """
        some = rows.take(replay.row[drawn].numpy())
        a, action, last = replay.a[drawn], replay.action[drawn], replay.last[drawn]
        after = some.after(a, action)
        inputs, inputs_after = some.inputs(a), some.inputs(after)
        losses = self.head.losses(self.predictor(inputs), some.target)
        losses_after = self.head.losses(self.predictor(inputs_after), some.target)
        with torch.no_grad():
            open_after = some.open_actions(after)
            chosen = self.q_network(inputs_after).masked_fill(~open_after, -torch.inf).argmax(-1, keepdim=True)
            ahead = target_network(inputs_after).gather(1, chosen)[:, 0] * (open_after.any(-1) & ~last)
            reward = -losses_after if self.reward == "log likelihood" else losses - losses_after
            wanted = reward + self.discount * ahead
        estimate = self.q_network(inputs).gather(1, action[:, None])[:, 0]
        return functional.smooth_l1_loss(estimate, wanted) + 0.5 * (losses.mean() + losses_after.mean())

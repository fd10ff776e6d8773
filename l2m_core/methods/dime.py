"""Estimating conditional mutual information by a value network (DIME; Gadgil et al., 2024)."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from l2m_core.methods.interface import register
from l2m_core.methods.masked import PredictorSettings, RankingNetworkMethod, Rows, Walks, walk
from l2m_core.methods.networks import Schedule, batches, gradient_step, train


@register("dime")
class DIME(RankingNetworkMethod):
    """A value network v(x⊙a, a) whose j-th output regresses the drop in loss when feature j, or panel j, is acquired.

        v_j(x⊙a, a) = sigmoid(raw_j) · H(a)   regresses   ℓ(f(x⊙a), y) − ℓ(f(x⊙(a + j)), y)

    with H the entropy of the current prediction, which no feature can exceed, and which keeps values non-negative.
    The mean of the drop is the conditional mutual information I(y; x_j | x⊙a). The predictor f, pretrained with random
    acquisitions, is trained on along the same walks. Walks are random throughout; with exploration (1.0, 0.2), say, a
    second stage follows, whose steps are random with probability ε = 0.2 and follow the values otherwise.
    """

    def __init__(
        self,
        *,
        exploration: tuple[float, ...] = (1.0,),
        per_cost: bool = False,
        schedule: Schedule | None = None,
        **predictor: Unpack[PredictorSettings],
    ):
        super().__init__(**predictor)
        self.exploration = exploration
        """ε of each stage in turn."""
        self.per_cost = per_cost
        """Rank by value per unit of cost, in walks and in rank()."""
        self.schedule = schedule or Schedule(epochs=160, plateau=10, patience=30, least_steps=8)
        """Of each stage. The one stage has the epochs and the patience of two; give two stages half of each."""

    def value(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(n, d) estimated drop in loss, in nats; -inf where blocked."""
        with torch.no_grad():
            return self._by_feature(self._values(self._encoded(x, a)), a)

    def _learn(self, rows: Rows, held: Rows) -> None:
        self._train_predictor(rows, held, self.pretraining)
        self.value_network = self._network(self.n_actions)
        with torch.no_grad():
            # Most features tell little: values start near zero rather than at half of the entropy.
            self.value_network.biases[-1].fill_(-2.5)
        for epsilon in self.exploration:
            self._train_values(rows, held, epsilon)

    def _values(self, inputs: Tensor) -> Tensor:
        """(n, actions) values in nats, between 0 and what is left to know"""
        left = self.head.largest_drop(self.predictor(inputs)).detach()
        return self.value_network(inputs).sigmoid() * left[:, None]

    def _scores(self, inputs: Tensor) -> Tensor:
        values = self._values(inputs)
        return values / torch.from_numpy(self._action_costs) if self.per_cost else values

    @property
    def _action_costs(self) -> np.ndarray:
        """(actions,)"""
        costs = np.zeros(self.n_actions, dtype=np.float32)
        # A panel costs what its dearest feature costs; `at` because several features share an action's number.
        np.maximum.at(costs, self.groups, self.costs)
        return costs

    def _train_values(self, rows: Rows, held: Rows, epsilon: float) -> None:
        def best(some: Rows, a: Tensor, open_actions: Tensor) -> Tensor:
            return self._scores(some.inputs(a))

        def noise(some: Rows, a: Tensor, open_actions: Tensor) -> Tensor:
            return torch.rand(open_actions.shape, generator=self.generator)

        def explore(some: Rows, a: Tensor, open_actions: Tensor) -> Tensor:
            scores = noise(some, a, open_actions)
            at_random = torch.rand((len(a), 1), generator=self.generator) < epsilon
            return torch.where(at_random, scores, best(some, a, open_actions) if epsilon < 1 else scores)

        def epoch(optimizer: torch.optim.Optimizer) -> None:
            for index in batches(len(rows), self.schedule, self.random):
                some = rows.take(index)
                gradient_step(optimizer, self._joint_loss(some, walk(some, explore, self.steps)))

        held_walks = walk(held, noise, self.steps)

        def validate() -> float:
            # The order must be good and the values true, so both decide which epoch is kept.
            value_error = self._value_error(held, held_walks, self._walk_losses(held, held_walks.states))
            return self._greedy_loss(held, best) + float(value_error)

        train([self.value_network, self.predictor], epoch, validate, self.schedule, (1.0, self.predictor_share))

    def _value_error(self, rows: Rows, walks: Walks, losses: Tensor) -> Tensor:
        """Mean squared difference between the values of the actions picked and the drops in loss; losses: (T + 1, n)"""
        # The drop is a target: its gradient would teach the predictor to be surprised.
        drop = (losses[:-1] - losses[1:]).detach()
        values = self._values(rows.repeat(self.steps).inputs(walks.states[:-1].flatten(0, 1)))
        picked = values.gather(1, walks.actions.flatten()[:, None]).view_as(drop)
        # Steps at which nothing was left to ask for have no drop to learn from.
        return ((picked - drop) ** 2)[walks.moved].sum() / walks.moved.sum().clamp(min=1)

    def _joint_loss(self, rows: Rows, walks: Walks) -> Tensor:
        losses = self._walk_losses(rows, walks.states)
        # A state that did not change is not counted twice.
        predictor_loss = (losses[0].sum() + losses[1:][walks.moved].sum()) / (walks.moved.sum() + len(rows))
        return predictor_loss + self._value_error(rows, walks, losses)

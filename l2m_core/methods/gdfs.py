"""Greedy dynamic feature selection (Covert et al., 2023)."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from l2m_core.learn.picks import gumbel, open_softmax, straight_through
from l2m_core.methods.interface import register
from l2m_core.methods.masked import PredictorSettings, RankingNetworkMethod, Rows, walk
from l2m_core.methods.networks import Schedule, batches, gradient_step, train


@register("gdfs")
class GDFS(RankingNetworkMethod):
    """A policy network π(j | x⊙a, a) that lowers the predictor's loss one step ahead.

    The predictor is pretrained with random acquisitions. Then both are trained together along walks that follow the
    policy's own Gumbel samples: at each state a,

        loss = ℓ(f(x ⊙ (a + s)), y),  s = softmax((log π + Gumbel noise) / τ), made one-hot on the way forward
                                           (straight-through), so that its gradient reaches the policy.

    Only recorded features that are not in a take part in the softmax. Where j is a panel, s is made one-hot over actions
    and reaches all features of the panel.
    """

    def __init__(
        self,
        *,
        temperatures: tuple[float, ...] = (0.5,),
        straight_through: bool = True,
        schedule: Schedule | None = None,
        **predictor: Unpack[PredictorSettings],
    ):
        super().__init__(**predictor)
        self.temperatures = temperatures
        """τ of each stage in turn."""
        self.straight_through = straight_through
        """False: the relaxed sample itself is the mask, as in the authors' own training."""
        self.schedule = schedule or Schedule(epochs=80, plateau=5, patience=15, least_steps=8)

    def _learn(self, rows: Rows, held: Rows) -> None:
        self._train_predictor(rows, held, self.pretraining)
        self.policy = self._network(self.n_actions)
        for temperature in self.temperatures:
            self._train_policy(rows, held, temperature)

    def _scores(self, inputs: Tensor) -> Tensor:
        return self.policy(inputs)

    def _train_policy(self, rows: Rows, held: Rows, temperature: float) -> None:
        def sampled(some: Rows, a: Tensor, open_actions: Tensor) -> Tensor:
            return self.policy(some.inputs(a)) + self._gumbel(open_actions.shape)

        def best(some: Rows, a: Tensor, open_actions: Tensor) -> Tensor:
            return self.policy(some.inputs(a))

        def epoch(optimizer: torch.optim.Optimizer) -> None:
            for index in batches(len(rows), self.schedule, self.random):
                some = rows.take(index)
                states = walk(some, sampled, self.steps).states[:-1]
                gradient_step(optimizer, self._one_step_loss(some, states, temperature))

        shares = (1.0, self.predictor_share)
        train([self.policy, self.predictor], epoch, lambda: self._greedy_loss(held, best), self.schedule, shares)

    def _one_step_loss(self, rows: Rows, states: Tensor, temperature: float) -> Tensor:
        """(T, n, d) states → mean loss after one more action, and before any"""
        many = rows.repeat(states.shape[0])
        a = states.flatten(0, 1)
        open_actions = many.open_actions(a)
        picked = self._relaxed_pick(self.policy(many.inputs(a)), open_actions, temperature)
        uncovered = picked[:, many.groups] * many.open(a)  # (T · n, d)
        after = self.head.losses(self.predictor(many.inputs(a.float() + uncovered)), many.target)
        could = open_actions.any(-1)
        # The first prediction, with nothing acquired, is asked for as well, so it stays trained.
        before = self.head.losses(self.predictor(rows.inputs(rows.start)), rows.target)
        # A mean over all predictions made, since rows run out of features at different steps.
        return (after[could].sum() + before.sum()) / (could.sum() + len(rows))

    def _relaxed_pick(self, logits: Tensor, open_actions: Tensor, temperature: float) -> Tensor:
        """(n, actions) one action per row as a relaxed one-hot; zero where nothing is open."""
        noisy = logits + self._gumbel(logits.shape)
        if self.straight_through:
            return straight_through(noisy, open_actions, temperature)
        return open_softmax(noisy / temperature, open_actions)

    def _gumbel(self, shape: torch.Size) -> Tensor:
        return gumbel(torch.rand(shape, generator=self.generator))

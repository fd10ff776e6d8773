"""A predictor trained with random acquisitions, asked in random order."""

from __future__ import annotations

import torch
from torch import Tensor

from l2m_core.methods.interface import register
from l2m_core.methods.masked import RankingNetworkMethod, Rows
from l2m_core.methods.networks import Schedule


@register("mlp_random")
class MLPRandom(RankingNetworkMethod):
    """Two hidden layers of 128, random masks a ⊂ r, 300 epochs of batches of 64, the best epoch by validation.

    The order is drawn from the seed for each position in the batch, so that the order of a row does not change
    while its values become known.
    """

    def __init__(self, *, seed: int = 0, hidden: int = 128, dropout: float = 0.0, schedule: Schedule | None = None):
        super().__init__(seed=seed, hidden=hidden, dropout=dropout)
        self.schedule = schedule or Schedule()

    def _learn(self, rows: Rows, held: Rows) -> None:
        self._train_predictor(rows, held, self.schedule)

    def _scores(self, inputs: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        return torch.rand((len(inputs), self.n_actions), generator=generator)

"""Gaussian-process regression on partly known rows: smooth functions of several features at once.

Of a row, the features that are unknown have a normal distribution, given those that are known (`Imputation`), and the process is
that of the function's mean over it. With m, s the middle and the spread of a feature, and l_j its length, two rows have

    k(x, x') = a² Π_j l_j / √t_j · exp(−(m_j − m'_j)² / 2t_j) + b² Σ_j m_j m'_j / l_j²,    t_j = l_j² + s_j² + s'_j².

A row's own variance is that of one draw, a² + b² Σ_j (m_j² + s_j²) / l_j² + σ²: what unknown features leave open counts as noise.
Lengths, a, b and σ maximise the marginal likelihood times a prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from l2m_core.model.columns import usable_std
from l2m_core.tabular.imputation import CELLS, Imputation, Imputed
from l2m_core.tabular.predictions import Gaussian
from l2m_core.tabular.preparation import Context

STEPS, RATE = 40, 0.1
"""Of the search for lengths and variances: a fixed number, so that the same rows give the same numbers."""
SEARCH_ROWS = 200
"""Rows that the search reads, at most."""
MOST_ROWS = 800
"""Rows that it is fitted to, at most: a random part of a longer cohort. Its time grows with the cube of them."""
LENGTH_SPREAD = 0.5
"""Standard deviation of the logarithm of a length, before any row has spoken."""
SIZE, SIZE_SPREAD = -1.0, 3.0
"""Mean and standard deviation of the logarithms of a², b² and σ², before any row has spoken."""
LEAST_NOISE = 1e-3  # of the outcome's variance


@dataclass(frozen=True)
class Kernel:
    """Logarithms of the lengths (D,), and of a², b² and σ² (3,)."""

    length: Tensor
    size: Tensor

    def between(self, one: Imputed, other: Imputed) -> Tensor:
        """(n, m) covariances of different rows."""
        square = (2 * self.length).exp()
        at_a_time = max(1, CELLS // max(1, other.middle.numel()))
        parts = zip(one.middle.split(at_a_time), one.variance.split(at_a_time), strict=True)
        smooth = torch.cat([self._smooth(Imputed(middle, variance), other, square) for middle, variance in parts])
        linear = (one.middle / square) @ other.middle.T
        return self.size[0].exp() * smooth + self.size[1].exp() * linear

    def _smooth(self, one: Imputed, other: Imputed, square: Tensor) -> Tensor:
        spread = square + one.variance[:, None] + other.variance[None]  # (n, m, D)
        apart = one.middle[:, None] - other.middle[None]
        return (self.length.sum() - 0.5 * (spread.log() + apart.square() / spread).sum(-1)).exp()

    def own(self, rows: Imputed) -> Tensor:
        """(n,) variances of outcomes, noise included."""
        linear = ((rows.middle.square() + rows.variance) / (2 * self.length).exp()).sum(1)
        return self.size[0].exp() + self.size[1].exp() * linear + self.size[2].exp() + LEAST_NOISE

    def of(self, rows: Imputed) -> Tensor:
        """(n, n)"""
        return self.between(rows, rows).fill_diagonal_(0.0) + torch.diag_embed(self.own(rows))


class GaussianProcess:
    """Fitted to a cohort's rows, of which the outcome is a number."""

    def __init__(self, context: Context, random: np.random.Generator):
        self.imputation = Imputation(context)
        if len(context.y) > MOST_ROWS:
            context = context.rows(np.sort(random.permutation(len(context.y))[:MOST_ROWS]))
        self.rows = self.imputation(context.x, np.ones_like(context.x, dtype=bool))
        y = torch.from_numpy(np.asarray(context.y)).double()
        self.shift, self.scale = float(y.mean()), float(usable_std(y.mean(), y.std()))
        y = ((y - self.shift) / self.scale)[:, None]
        some = torch.from_numpy(np.sort(random.permutation(len(y))[:SEARCH_ROWS]))
        self.kernel = _search(self.rows.rows(some), y[some])
        self.root = torch.linalg.cholesky(self.kernel.of(self.rows))
        self.weights = torch.cholesky_solve(y, self.root)

    def predict(self, x: np.ndarray, a: np.ndarray) -> Gaussian:
        rows = self.imputation(x, a)
        across = self.kernel.between(rows, self.rows)  # (n, N)
        told = torch.linalg.solve_triangular(self.root, across.T, upper=False).square().sum(0)
        variance = (self.kernel.own(rows) - told).clamp_min(LEAST_NOISE)
        mean = (across @ self.weights)[:, 0]
        return Gaussian((self.shift + self.scale * mean).numpy(), (self.scale * variance.sqrt()).numpy())


@torch.enable_grad()
def _search(rows: Imputed, y: Tensor) -> Kernel:
    """The most likely kernel. y: (n, 1), standardised."""
    expected = 0.5 * math.log(rows.middle.shape[1]) + 0.5  # of many features each tells little
    length = torch.full((rows.middle.shape[1],), expected, dtype=torch.float64, requires_grad=True)
    size = torch.tensor([0.3, 0.3, 0.5], dtype=torch.float64).log().requires_grad_()
    search = torch.optim.Adam([length, size], lr=RATE)
    for _ in range(STEPS):
        search.zero_grad()
        kernel = Kernel(length, size)
        root = torch.linalg.cholesky(kernel.of(rows))
        white = torch.linalg.solve_triangular(root, y, upper=False)
        # −log N(y; 0, K), and the prior's
        loss = 0.5 * white.square().sum() + root.diagonal().log().sum()
        away = ((length - expected) / LENGTH_SPREAD).square().sum() + ((size - SIZE) / SIZE_SPREAD).square().sum()
        (loss + away / 2).backward()
        search.step()
    return Kernel(length.detach(), size.detach())

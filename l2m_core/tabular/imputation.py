"""What is not known of a row has a normal distribution, given what is: for models that average over it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from l2m_core.tabular.preparation import Context, Encoding, known_cells

SHRINKAGE = 5.0
"""Correlations between features are drawn towards 0 as if so many rows more, for each feature, had shown none."""
LEAST_EIGENVALUE = 0.05
CELLS = 4_000_000
"""Of rows × columns × columns, at most so many are held at a time."""


@dataclass(frozen=True)
class Imputed:
    """middle, variance: (n, D) of each encoded column, 0 variance where it is known."""

    middle: Tensor
    variance: Tensor

    def rows(self, index: Tensor) -> Imputed:
        return Imputed(self.middle[index], self.variance[index])


class Imputation:
    """What is known of a row, and a normal distribution for what is not."""

    def __init__(self, context: Context):
        self.encoding = Encoding(context)
        z, known = self._encoded(context.x, np.ones_like(context.x, dtype=bool))
        # Second moments of columns recorded together; columns are centred and of unit variance, or levels of a category.
        self.centre = (z * known).sum(0) / known.sum(0).clamp_min(1)
        z = (z - self.centre) * known
        together = known.T @ known
        covariance = z.T @ z / (together + SHRINKAGE * z.shape[1])
        variance = (z.square().sum(0) / known.sum(0).clamp_min(1)).clamp_min(1e-6)
        covariance.diagonal().copy_(variance)
        # Of moments from different rows a covariance may come out that none can be.
        scale = variance.sqrt()
        values, vectors = torch.linalg.eigh(covariance / scale / scale[:, None])
        self.covariance = (vectors * values.clamp_min(LEAST_EIGENVALUE)) @ vectors.T * scale * scale[:, None]

    def _encoded(self, x: np.ndarray, a: np.ndarray) -> tuple[Tensor, Tensor]:
        known = known_cells(x, a)[:, self.encoding.owner]
        return torch.from_numpy(self.encoding.values(x) * known).double(), torch.from_numpy(known).double()

    def __call__(self, x: np.ndarray, a: np.ndarray) -> Imputed:
        z, known = self._encoded(x, a)
        # Many rows know the same columns, as where one patient is asked about with several results of a test.
        patterns, pattern = known.unique(dim=0, return_inverse=True)
        off = (z - self.centre) * known
        middle, variance = torch.empty_like(z), torch.empty_like(z)
        at_a_time = max(1, CELLS // z.shape[1] ** 2)
        for first in range(0, len(patterns), at_a_time):
            slope, left = self._told(patterns[first : first + at_a_time])
            rows = ((pattern >= first) & (pattern < first + at_a_time)).nonzero()[:, 0]
            for some in rows.split(at_a_time):
                its = pattern[some] - first
                middle[some] = (off[some, None] @ slope[its])[:, 0]
                variance[some] = left[its]
        return Imputed(torch.where(known > 0, off, middle), torch.where(known > 0, 0.0, variance))

    def _told(self, known: Tensor) -> tuple[Tensor, Tensor]:
        """known: (P, D) patterns → (P, D, D) what a known column adds to the middle of others, (P, D) variances left."""
        both = known[:, :, None] * known[:, None, :]
        # Σ_kk of each pattern, with 1 on the diagonal where a column is unknown, so that all have one shape.
        root = torch.linalg.cholesky(self.covariance * both + torch.diag_embed(1 - known))
        across = self.covariance * known[:, :, None]
        whitened = torch.linalg.solve_triangular(root, across, upper=False)
        slope = torch.linalg.solve_triangular(root.transpose(1, 2), whitened, upper=True)
        return slope, (self.covariance.diagonal() - whitened.square().sum(1)).clamp_min(0.0)

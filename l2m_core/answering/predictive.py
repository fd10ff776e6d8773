"""What a person gets for a continuous outcome: one predictive distribution for each of n rows, in plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from l2m_core.model.density import Density


@dataclass(frozen=True)
class Predictive:
    """n predictive distributions on the outcome's own scale."""

    density: Density  # logits (1, n, bins)

    @property
    def mean(self) -> np.ndarray:
        """(n,)"""
        return self.density.mean[0].numpy()

    @property
    def std(self) -> np.ndarray:
        """(n,)"""
        return self.density.std[0].numpy()

    def quantile(self, p: float) -> np.ndarray:
        """(n,) values that the outcome stays below with probability p."""
        return self.density.quantile(p)[0].numpy()

    def log_prob(self, y) -> np.ndarray:
        """(n,) log density at y: (n,)."""
        return self.density.log_prob(torch.as_tensor(np.asarray(y, dtype=np.float32))[None])[0].numpy()

    def pdf(self, grid) -> np.ndarray:
        """(n, m) density of each row at m outcomes."""
        values = torch.as_tensor(np.asarray(grid, dtype=np.float32))
        n, m = self.density.logits.shape[1], len(values)
        each = Density(
            self.density.logits[0][:, None].expand(-1, m, -1),
            self.density.shift.expand(n, 1),
            self.density.scale.expand(n, 1),
        )
        return each.log_prob(values.expand(n, m)).exp().numpy()

    def entropy(self) -> np.ndarray:
        """(n,) differential entropy in nats of the standardised outcome."""
        p = self.density.probabilities[0]
        edges = self.density.edges
        width = torch.cat([edges.new_tensor([1.0]), edges[1:] - edges[:-1], edges.new_tensor([1.0])])
        return -(p * (p.clamp_min(1e-12) / width).log()).sum(-1).numpy()

    def row(self, index: int) -> Predictive:
        part = slice(index, index + 1)
        return Predictive(Density(self.density.logits[:, part], self.density.shift, self.density.scale))

    def __len__(self) -> int:
        return self.density.logits.shape[1]

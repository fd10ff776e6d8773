"""The predictive distribution of a continuous outcome, as plain arrays: one distribution for each of n rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from l2m_core.model.density import Density, Gaussian

GAUSSIAN_EDGES = torch.linspace(-4, 4, 161)  # standard deviations of the cohort's outcome


@dataclass(frozen=True)
class Predictive:
    """n predictive distributions on the outcome's own scale."""

    distribution: Density | Gaussian
    """Of one task (B = 1), on the CPU: probabilities over bins (cells), or a mean and a spread (rows)."""

    @classmethod
    def of(cls, distribution: Density | Gaussian) -> Predictive:
        """What a model puts out, wherever and in whatever precision it was computed."""
        return cls(type(distribution)(*(tensor.float().cpu() for tensor in vars(distribution).values())))

    @property
    def mean(self) -> np.ndarray:
        """(n,)"""
        return self.distribution.mean[0].numpy()

    @property
    def std(self) -> np.ndarray:
        """(n,)"""
        return self.distribution.std[0].numpy()

    def quantile(self, p: float) -> np.ndarray:
        """(n,) values that the outcome stays below with probability p."""
        return self.distribution.quantile(p)[0].numpy()

    def log_prob(self, y) -> np.ndarray:
        """(n,) log density at y: (n,)."""
        return self.distribution.log_prob(torch.from_numpy(np.array(y, dtype=np.float32))[None])[0].numpy()

    def pdf(self, grid) -> np.ndarray:
        """(n, m) density of each row at m outcomes."""
        values = torch.from_numpy(np.array(grid, dtype=np.float32))
        raw, shift, scale = vars(self.distribution).values()  # (1, n, …), (1, 1), (1, 1)
        n, m = raw.shape[1], len(values)
        # Each row becomes a task of its own with m copies of its distribution: one `log_prob` answers for all.
        each = type(self.distribution)(raw[0][:, None].expand(-1, m, -1), shift.expand(n, 1), scale.expand(n, 1))
        return each.log_prob(values.expand(n, m)).exp().numpy()

    def entropy(self) -> np.ndarray:
        """(n,) differential entropy in nats of the standardised outcome."""
        if isinstance(self.distribution, Gaussian):
            # H of a normal distribution: ½ (1 + log 2π) + log σ.
            spread = (self.distribution.std / self.distribution.scale)[0]
            return (0.5 * (1 + math.log(2 * math.pi)) + spread.log()).numpy()
        p = self.distribution.probabilities[0]
        edges = self.distribution.edges
        # -Σ p log(p / width); the two open bins count as one standard deviation wide.
        width = torch.cat([edges.new_tensor([1.0]), edges[1:] - edges[:-1], edges.new_tensor([1.0])])
        return -(p * (p.clamp_min(1e-12) / width).log()).sum(-1).numpy()

    @property
    def bin_probabilities(self) -> np.ndarray:
        """(n, bins) of a distribution over bins; a Gaussian's, over as many parts of its outcome's usual range."""
        if isinstance(self.distribution, Density):
            return self.distribution.probabilities[0].double().numpy()
        mean, std = (getattr(self.distribution, name)[0] for name in ("mean", "std"))  # (n,)
        z = (self.distribution.shift + self.distribution.scale * GAUSSIAN_EDGES - mean[:, None]) / std[:, None]
        # Φ at the edges of the bins; their differences are the masses, the two outermost bins open.
        up_to = torch.special.ndtr(z.double())
        ends = up_to.new_zeros(len(mean), 1), up_to.new_ones(len(mean), 1)
        return torch.diff(torch.cat([ends[0], up_to, ends[1]], 1)).numpy()

    def row(self, index: int) -> Predictive:
        raw, shift, scale = vars(self.distribution).values()
        return Predictive(type(self.distribution)(raw[:, index : index + 1], shift, scale))

    def __len__(self) -> int:
        return next(iter(vars(self.distribution).values())).shape[1]

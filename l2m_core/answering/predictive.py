"""The predictive distribution of a continuous outcome, as plain arrays: one distribution for each of n rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from l2m_core.errors import InputError
from l2m_core.model.density import Density, Gaussian

GAUSSIAN_EDGES = torch.linspace(-4, 4, 161)  # standard deviations of the cohort's outcome
ANYWHERE = (-math.inf, math.inf)
FEWEST_AT_LIMIT, LEAST_AT_LIMIT = 3, 0.02
"""So many rows, and such a share of all, have the least or the most value where it is a limit of the outcome."""


def reach_of(y: np.ndarray) -> tuple[float, float]:
    """The least and the most that an outcome can be, by those that are recorded: (N,).

    It never changes its sign where no recorded one does: no stay is shorter than nothing. An end that several patients share
    is a limit, as 30 of a score or one day of whole days; one patient alone is only the furthest so far.
    """
    least, most = float(y.min()), float(y.max())
    enough = max(FEWEST_AT_LIMIT, LEAST_AT_LIMIT * len(y))
    low = least if (y == least).sum() >= enough else 0.0 if least >= 0 else -math.inf
    high = most if (y == most).sum() >= enough else 0.0 if most <= 0 else math.inf
    return low, high


@dataclass(frozen=True)
class Predictive:
    """n predictive distributions on the outcome's own scale."""

    distribution: Density | Gaussian
    """Of one task (B = 1), on the CPU: probabilities over bins (cells), or a mean and a spread (rows)."""
    reach: tuple[float, float] = ANYWHERE
    """The least and the most that the outcome can be. What is said of it (mean, quantiles, chances of a range) stays within: the
    little that a distribution has beyond counts as lying at the end. Its density, and so its log score, is the model's own."""

    @classmethod
    def of(cls, distribution: Density | Gaussian) -> Predictive:
        """What a model puts out, wherever and in whatever precision it was computed."""
        return cls(type(distribution)(*(tensor.float().cpu() for tensor in vars(distribution).values())))

    @property
    def mean(self) -> np.ndarray:
        """(n,)"""
        return np.clip(self.distribution.mean[0].numpy(), *self.reach)

    @property
    def std(self) -> np.ndarray:
        """(n,)"""
        return self.distribution.std[0].numpy()

    def quantile(self, p: float | Sequence[float]) -> np.ndarray:
        """(n,) values that the outcome stays below with probability p; of several probabilities (n, m)."""
        levels = _numbers(p, "p")
        if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
            raise InputError(f"p is {p!r:.60}; it must lie strictly between 0 and 1, or be a list of such levels.")
        found = [self.distribution.quantile(level)[0].numpy() for level in levels.ravel().tolist()]
        values = np.stack(found, -1) if found else np.empty((len(self), 0), np.float32)
        return np.clip(values if levels.ndim else values[:, 0], *self.reach)

    def chances(self, edges) -> np.ndarray:
        """(n, m - 1) how likely the outcome lies between each two of m ascending edges; the last one counts to its range."""
        ascending = _numbers(edges, "edges")
        if ascending.ndim != 1 or not (np.diff(ascending) >= 0).all() or np.isnan(ascending).any():
            raise InputError(f"edges are {edges!r:.60}; they must be a list of numbers in ascending order.")
        values = torch.from_numpy(ascending)
        below = self.distribution.below(values[None])[0].numpy()  # (n, m)
        # What lies beyond the reach lies at its end.
        below = np.where(values <= self.reach[0], 0.0, np.where(values >= self.reach[1], 1.0, below))
        return np.diff(below)

    def log_prob(self, y) -> np.ndarray:
        """(n,) log density at y: (n,)."""
        outcomes = _numbers(y, "y")
        if outcomes.shape != (len(self),):
            # Fewer would be taken for those of the first rows.
            raise InputError(
                f"y has the shape {outcomes.shape}; it must hold one outcome for each of {len(self)} rows."
            )
        return self.distribution.log_prob(torch.from_numpy(outcomes.astype(np.float32))[None])[0].numpy()

    def pdf(self, grid) -> np.ndarray:
        """(n, m) density of each row at m outcomes."""
        outcomes = _numbers(grid, "grid")
        if outcomes.ndim != 1:
            raise InputError(f"grid has the shape {outcomes.shape}; it must be a list of outcomes.")
        values = torch.from_numpy(outcomes.astype(np.float32))
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
        if not -len(self) <= index < len(self):
            raise InputError(f"There is no row {index}; there are {len(self)}, counted from 0.")
        index %= len(self)
        raw, shift, scale = vars(self.distribution).values()
        return replace(self, distribution=type(self.distribution)(raw[:, index : index + 1], shift, scale))

    def __len__(self) -> int:
        return next(iter(vars(self.distribution).values())).shape[1]

    def __repr__(self) -> str:
        if len(self) != 1:
            return f"Predictive(of {len(self):,} rows)"
        told = (float(self.mean[0]), *self.quantile((0.05, 0.95))[0].tolist())
        mean, low, high = (np.format_float_positional(x, 3, fractional=False, trim="-") for x in told)
        return f"Predictive(mean {mean}, with 90% between {low} and {high})"


def _numbers(given: Any, what: str) -> np.ndarray:
    """One number, or an array of them, in double precision. It is a copy: torch shares no memory with what was given."""
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is {given!r:.60}; it must be a number, or a list of numbers.") from error

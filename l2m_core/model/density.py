"""Predictive distributions of a continuous outcome.

Density: probabilities over fixed bins of the standardised outcome; it can be skewed or have several modes, and its two
outermost bins are open, with exponential tails. Gaussian: the study's mean and bounded standard deviation.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from l2m_core.model.interface import Memory, Output

LEAST_STD = 0.05  # of the standardised outcome: keeps a likelihood from running away on near-noiseless tasks
LEAST_MASS = 1e-12  # of a bin, so that its logarithm is finite
TAIL = 0.5  # mean excess, in standard deviations of the outcome, beyond the outermost edges


@functools.cache
def _edges(bins: int) -> Tensor:
    """(bins - 1,) inner edges: dense in the middle (logistic quantiles), reaching about ±4.6 for 64 bins."""
    # Quantiles of a logistic distribution of scale 1.1: narrow bins where standardised outcomes are common.
    share = torch.arange(1, bins, dtype=torch.float64) / bins
    return (1.1 * torch.log(share / (1 - share))).float()


@dataclass(frozen=True)
class Density:
    """n predictive distributions per task. logits: (B, n, bins); shift, scale: (B, 1) of the outcome."""

    logits: Tensor
    shift: Tensor
    scale: Tensor

    @property
    def edges(self) -> Tensor:
        return _edges(self.logits.shape[-1]).to(self.logits.device)

    def bins_of(self, y: Tensor) -> Tensor:
        """y: (B, n) on the outcome's own scale → (B, n) which bin each lies in."""
        # Bin i lies between edges i - 1 and i; bins 0 and `bins - 1` are open to their side.
        return torch.searchsorted(self.edges, ((y.float() - self.shift) / self.scale).contiguous())

    def log_prob(self, y: Tensor) -> Tensor:
        """y: (B, n) on the outcome's own scale → log density."""
        z = (y.float() - self.shift) / self.scale
        edges = self.edges
        bin_index = self.bins_of(y)  # (B, n)
        # log p(y) = log P(bin) + log density within the bin + log |dz / dy|
        mass = self.logits.float().log_softmax(-1).gather(-1, bin_index[..., None])[..., 0]
        low, high = edges[0], edges[-1]
        padded = torch.cat([edges[:1], edges, edges[-1:]])
        # Uniform within an inner bin: a density of 1 / width. The outermost bins are padded to width 0 and get their
        # tails below.
        inner = -(padded[bin_index + 1] - padded[bin_index]).clamp_min(1e-9).log()
        beyond = torch.maximum(low - z, z - high).clamp_min(0.0)
        # Exponential tails of mean TAIL, so that no outcome has a density of 0.
        tail = -beyond / TAIL - math.log(TAIL)
        outside = (bin_index == 0) | (bin_index == len(edges))
        return mass + torch.where(outside, tail, inner) - self.scale.log()

    @property
    def probabilities(self) -> Tensor:
        return self.logits.float().softmax(-1)

    def _moments(self) -> tuple[Tensor, Tensor]:
        """(bins,) mean and second moment of the standardised outcome within each bin."""
        edges = self.edges
        middle = (edges[1:] + edges[:-1]) / 2
        # Mean of a uniform bin, and of the exponential tails.
        first = torch.cat([edges[:1] - TAIL, middle, edges[-1:] + TAIL])
        tail = edges.new_tensor([TAIL**2])
        # E[z²] = mean² + variance: width² / 12 of a uniform bin, TAIL² of an exponential tail.
        return first, first.square() + torch.cat([tail, (edges[1:] - edges[:-1]).square() / 12, tail])

    @property
    def mean(self) -> Tensor:
        first, _ = self._moments()
        return self.shift + self.scale * (self.probabilities @ first)

    @property
    def std(self) -> Tensor:
        first, second = self._moments()
        p = self.probabilities
        return self.scale * (p @ second - (p @ first).square()).clamp_min(1e-12).sqrt()

    def quantile(self, level: float) -> Tensor:
        """(B, n) values that the outcome stays below with probability `level`."""
        _check_level(level)
        edges = self.edges
        # Find the bin in which the distribution function passes the level, then go into it by the share of its mass
        # that is still missing.
        cumulative = self.probabilities.cumsum(-1).contiguous()
        target = torch.full_like(cumulative[..., :1], level)
        index = torch.searchsorted(cumulative, target).clamp_max(len(edges))
        before = torch.where(index > 0, cumulative.gather(-1, (index - 1).clamp_min(0)), torch.zeros_like(target))
        mass = self.probabilities.gather(-1, index).clamp_min(1e-12)
        inside = ((target - before) / mass).clamp(1e-9, 1 - 1e-9)
        padded = torch.cat([edges[:1], edges, edges[-1:]])
        low, high = padded[index], padded[index + 1]
        z = low + inside * (high - low)
        # In the tails the distribution function is exponential, not linear.
        z = torch.where(index == 0, edges[0] + TAIL * inside.log(), z)
        z = torch.where(index == len(edges), edges[-1] - TAIL * (1 - inside).log(), z)
        return self.shift + self.scale * z[..., 0]

    def below(self, y: Tensor) -> Tensor:
        """y: (B, m) on the outcome's own scale → (B, n, m) probabilities that the outcome stays below, in double precision."""
        z, edges = ((y - self.shift) / self.scale).double(), self.edges.double()
        mass = self.logits.double().softmax(-1)
        index = torch.searchsorted(edges, z.contiguous())  # (B, m) the bin of each
        # The share of its bin that lies below it: of an inner one, uniform, linear; of the outermost the exponential tails.
        padded = torch.cat([edges[:1], edges, edges[-1:]])
        low, high = padded[index], padded[index + 1]
        inside = (z - low) / (high - low).clamp_min(1e-9)
        inside = torch.where(index == 0, ((z - edges[0]) / TAIL).clamp_max(0.0).exp(), inside)
        inside = torch.where(index == len(edges), -torch.expm1(((edges[-1] - z) / TAIL).clamp_max(0.0)), inside)
        index = index[:, None].expand(-1, mass.shape[1], -1)
        return (mass.cumsum(-1) - mass).gather(-1, index) + mass.gather(-1, index) * inside[:, None]

    def crps(self, y: Tensor) -> Tensor:
        """y: (B, n) on the outcome's own scale → (B, n) CRPS of the standardised outcome: ∫ (F(z) - [y ≤ z])² dz.

        F is taken at the inner edges, each of which stands for half of the bins beside it.
        """
        edges = self.edges  # (bins - 1,)
        up_to = self.probabilities.cumsum(-1)[..., :-1]  # (B, n, bins - 1): F at the edges
        gaps = torch.diff(edges, prepend=edges[:1], append=edges[-1:])
        z = (y.float() - self.shift) / self.scale
        return ((up_to - (z[..., None] <= edges).float()).square() * (gaps[1:] + gaps[:-1]) / 2).sum(-1)

    def on_scale_of(self, other: Density) -> Density:
        """The same distributions in the bins of `other`, which may lie elsewhere by a little."""
        edges = other.shift + other.scale * other.edges  # (B, bins - 1)
        below = self.below(edges)
        ends = torch.zeros_like(below[..., :1]), torch.ones_like(below[..., :1])
        masses = torch.diff(torch.cat([ends[0], below, ends[1]], -1)).clamp_min(LEAST_MASS)
        return replace(other, logits=masses.log().float())

    def divergence(self, other: Density) -> Tensor:
        """(B, n) KL(self ‖ other) in nats."""
        log_p, log_q = self.logits.float().log_softmax(-1), other.logits.float().log_softmax(-1)
        return (log_p.exp() * (log_p - log_q)).sum(-1)


@dataclass(frozen=True)
class Gaussian:
    """n normal distributions per task. raw: (B, n, 2) mean and unbounded spread of the standardised outcome."""

    raw: Tensor
    shift: Tensor
    scale: Tensor

    @property
    def mean(self) -> Tensor:
        return self.shift + self.scale * self.raw[..., 0].float()

    @property
    def std(self) -> Tensor:
        # The study's head bounds the spread from below: a likelihood could otherwise grow without end on tasks that
        # are nearly free of noise.
        return self.scale * (LEAST_STD + (1 - LEAST_STD) * F.softplus(self.raw[..., 1].float()))

    def log_prob(self, y: Tensor) -> Tensor:
        """y: (B, n) on the outcome's own scale → log density."""
        z = (y.float() - self.mean) / self.std
        return -0.5 * z.square() - self.std.log() - 0.5 * math.log(2 * math.pi)

    def quantile(self, level: float) -> Tensor:
        """(B, n) values that the outcome stays below with probability `level`."""
        _check_level(level)
        return self.mean + self.std * torch.special.ndtri(torch.tensor(level, dtype=torch.float64)).item()

    def below(self, y: Tensor) -> Tensor:
        """y: (B, m) on the outcome's own scale → (B, n, m) probabilities that the outcome stays below, in double precision."""
        z = (y.double()[:, None] - self.mean.double()[..., None]) / self.std.double()[..., None]
        return torch.special.ndtr(z)

    def divergence(self, other: Gaussian) -> Tensor:
        """(B, n) KL(self ‖ other) in nats."""
        # KL of two normal distributions in closed form.
        ratio = (self.std / other.std).square()
        return 0.5 * (ratio + ((self.mean - other.mean) / other.std).square() - 1 - ratio.log())


def predictive(output: Output, memory: Memory) -> Density | Gaussian:
    """The distribution that an output describes, on the outcome's own scale."""
    kind = Gaussian if output.prediction.shape[-1] == 2 else Density
    return kind(output.prediction, memory.outcome_shift, memory.outcome_scale)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must lie strictly between 0 and 1.")

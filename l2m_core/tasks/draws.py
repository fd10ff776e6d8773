"""Small random draws and batch arithmetic that several priors share. Every draw takes its generator."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SERIES = 24  # terms of a Pólya-Gamma draw


def uniform(generator: torch.Generator, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device) * (high - low) + low


def coin(generator: torch.Generator, shape: tuple[int, ...], probability: float | Tensor) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device) < probability


def choice(generator: torch.Generator, count: int, weights: tuple[float, ...]) -> Tensor:
    """(count,) indices drawn with the given weights."""
    table = torch.tensor(weights, dtype=torch.float32, device=generator.device)
    return torch.multinomial(table, count, replacement=True, generator=generator)


def normal(generator: torch.Generator, shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


def log_uniform(generator: torch.Generator, shape: tuple[int, ...], low: float, high: float) -> Tensor:
    log_low, log_high = torch.tensor([low, high], dtype=torch.float64).log().tolist()
    return uniform(generator, shape, log_low, log_high).exp()


def integers(generator: torch.Generator, shape: tuple[int, ...], low: int, high: int) -> Tensor:
    """Whole numbers from low to high, both included."""
    return torch.randint(low, high + 1, shape, generator=generator, device=generator.device)


def subset(generator: torch.Generator, size: Tensor, features: int, allowed: Tensor | None = None) -> Tensor:
    """size: (...) whole numbers → (..., features) bool with `size` True entries at random positions.

    allowed: (..., features) bool narrows the positions; where it allows fewer than `size`, all of them are taken.
    """
    key = uniform(generator, (*size.shape, features))
    if allowed is not None:
        key = key + (~allowed).to(key.dtype)
    # argsort twice gives each entry's rank; the `size` lowest ranks are a draw without replacement. Entries that are
    # not allowed have keys from 1 up and so rank last.
    rank = key.argsort(dim=-1).argsort(dim=-1)
    chosen = rank < size.unsqueeze(-1)
    return chosen if allowed is None else chosen & allowed


def columns_at(x: Tensor, index: Tensor) -> Tensor:
    """x: (B, N, d), index: (B, m) → (B, N, m), of each task the columns that it names."""
    return x.gather(2, index[:, None, :].expand(-1, x.shape[1], -1))


def categorical(generator: torch.Generator, probabilities: Tensor) -> Tensor:
    """probabilities: (..., K) → (...) int64, one draw for each row of probabilities."""
    # Inverse of the distribution function: how many cumulative sums lie below a uniform draw.
    threshold = uniform(generator, tuple(probabilities.shape[:-1])).unsqueeze(-1)
    cumulative = probabilities.cumsum(dim=-1)
    # A draw beyond a total that rounds to less than one would name a class that does not exist.
    return (threshold * cumulative[..., -1:] >= cumulative).sum(dim=-1).clamp_max(probabilities.shape[-1] - 1)


def standardise(x: Tensor, recorded: Tensor | None = None, dim: int = 1, limit: float | None = None) -> Tensor:
    """Zero mean and unit variance over `dim`, from recorded values only; 0 where not recorded; clamped to ±limit.

    A constant column becomes zeros.
    """
    weight = torch.ones_like(x) if recorded is None else recorded.to(x.dtype)
    # where, not a product: an infinite or NaN value that was never recorded must not spread.
    x = x if recorded is None else torch.where(recorded, x, torch.zeros_like(x))
    count = weight.sum(dim=dim, keepdim=True).clamp_min(1.0)
    mean = (x * weight).sum(dim=dim, keepdim=True) / count
    centred = (x - mean) * weight
    std = (centred.square().sum(dim=dim, keepdim=True) / count).sqrt()
    # Relative to the mean, because a constant in float32 need not centre to an exact zero.
    constant = std <= 1e-6 * mean.abs().clamp_min(1.0)
    scaled = torch.where(constant, torch.zeros_like(x), centred / std.clamp_min(1e-30))
    return scaled if limit is None else scaled.clamp(-limit, limit)


def polya_gamma(generator: torch.Generator, score: Tensor) -> Tensor:
    """One PG(1, score) draw each: the first of a series' exponential draws, and the mean of those that are left out."""
    k = torch.arange(1, SERIES + 1, device=score.device).double()
    below = (k - 0.5).square() + (score / (2 * math.pi)).square()[..., None]  # (..., SERIES)
    drawn = -uniform(generator, tuple(below.shape), 1e-7, 1.0).double().log()
    # Its mean is tanh(c / 2) / 2c.
    half = score.abs().clamp_min(1e-4) / 2
    left = torch.tanh(half) / (4 * half) - (1 / below).sum(-1) / (2 * math.pi**2)
    return (drawn / below).sum(-1) / (2 * math.pi**2) + left.clamp_min(0.0)

"""Bringing raw values to the model's scale, with statistics of observed context values only.

Every value enters twice: by size (robustly squashed), which keeps distances, and by rank among the context's values,
which makes skew and units irrelevant. Waves of the rank let the model tell codes and grades apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

Numbers = TypeVar("Numbers", Tensor, np.ndarray)

CHANNELS = 12
LARGEST_SQUARED = 1e15  # of values whose squares are summed as they are: those of a million rows stay below 1e37
SMALLEST_SQUARED = 1e-15  # below it, squares are less than a float32 holds with all its digits
LARGER_UNIT, SMALLER_UNIT = 2.0**80, 2.0**-80
LEAST_STD = 1e-6  # of what is alike but for rounding
ROUNDING = 1e-5  # as a share of the size of numbers
# Channels that a model with another setting of `values` does not see: those of the size, and those of the rank.
HIDDEN = {"size and rank": (), "size": (1, 3, 4, 5, 6, 7), "rank": (0, 2)}


@dataclass(frozen=True)
class Columns:
    """Statistics of each context column.

    ordered: (B, d, N) observed values ascending, +inf beyond `count`; count: (B, d) observed values;
    mean, std: (B, d); about: (B, d, 3) facts about the column itself (share recorded, distinct values, unordered).
    """

    ordered: Tensor
    count: Tensor
    mean: Tensor
    std: Tensor
    about: Tensor


def fit_columns(x: Tensor, r: Tensor, categorical: Tensor) -> Columns:
    """x, r: (B, N, d); categorical: (B, d)."""
    x = x.float()
    # Only recorded values enter any statistic: what is hidden must not leak through a mean.
    count = r.sum(1)  # (B, d)
    safe = count.clamp_min(1)
    # (B, d, N) ascending; +inf sorts what is missing to the end, where `count` cuts it off.
    ordered = x.masked_fill(~r, float("inf")).transpose(1, 2).contiguous().sort(-1).values
    # Tails are brought in to the 1st and 99th percentiles before mean and spread are taken: one typing error
    # in a lab must not flatten all other values.
    low, high = _quantile(ordered, safe, 0.01), _quantile(ordered, safe, 0.99)
    tamed = torch.minimum(torch.maximum(x, low[:, None]), high[:, None])
    tamed = torch.where(r, tamed, torch.zeros_like(tamed))
    mean, std = mean_and_std(tamed, r, safe)
    # Steps in the sorted values: 1 + their number is how many distinct values the column has. It tells codes and
    # grades from measurements.
    new_value = (ordered[..., 1:] != ordered[..., :-1]) & ordered[..., 1:].isfinite()
    distinct = 1 + new_value.sum(-1)
    about = torch.stack(
        [count / x.shape[1], (distinct.float().log() / 3.0).clamp_max(2.0), categorical.float()],
        dim=-1,
    )
    return Columns(ordered, count, mean, std, about)


def mean_and_std(x: Tensor, r: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """(B, d) each, of the recorded values of x: (B, N, d) float32, finite and 0 where r is False. count: (B, d), from 1."""
    unit = unit_to_square(x)
    x = x / unit[:, None]
    mean = x.sum(1) / count
    variance = torch.where(r, x - mean[:, None], torch.zeros_like(x)).square().sum(1) / count
    most = torch.finfo(x.dtype).max  # a mean or spread of the very largest values may round to more
    return (mean * unit).clamp(-most, most), (variance.sqrt() * unit).clamp_max(most)


def unit_to_square(x: Tensor) -> Tensor:
    """(B, …) of x: (B, N, …), what to divide values by before they are squared.

    The square of a value beyond 1e19 is more than a float32 holds, and that of one below 1e-19 nearly nothing. Such columns
    are worked on in a unit 2^80 times as large, or as small; every other column keeps its own. A power of two changes no
    digit.
    """
    largest = x.abs().amax(1)
    small = (largest > 0) & (largest < SMALLEST_SQUARED)
    return torch.where(largest > LARGEST_SQUARED, LARGER_UNIT, torch.where(small, SMALLER_UNIT, 1.0))


def is_rounding(mean: Numbers, std: Numbers) -> Numbers:
    """Whether values that differ by as little as `std` are alike, but for rounding; in mol/L all differences are small."""
    return (std <= LEAST_STD) & (std <= ROUNDING * (abs(mean) + std))


def usable_std(mean: Tensor, std: Tensor) -> Tensor:
    """What may be divided by."""
    return torch.where(is_rounding(mean, std), LEAST_STD, std)


def embed_values(columns: Columns, x: Tensor, known: Tensor) -> Tensor:
    """(B, n, d) values and mask → (B, n, d, CHANNELS); what is not known never shows."""
    # Unknown values are the mean only so that no NaN arises below; they are multiplied by 0 in the end.
    x = torch.where(known, x.float(), columns.mean[:, None].expand_as(x))
    z = (x - columns.mean[:, None]) / usable_std(columns.mean, columns.std)[:, None]
    z = torch.where(columns.std[:, None] > 0, z, torch.zeros_like(z)).clamp(-1e4, 1e4)
    # About linear near 0, logarithmic in the tails: an outlier stays visible and does not dominate.
    size = z.sign() * z.abs().log1p()
    values = x.transpose(1, 2).contiguous()
    # The rank among the context's values, ties at their middle: (values below + values up to) / 2, as a share in 0 …
    # 1. It is searched in the sorted column, so a query costs log N.
    below = torch.searchsorted(columns.ordered, values, right=False)
    upto = torch.searchsorted(columns.ordered, values, right=True)
    count = columns.count.clamp_min(1)[..., None]
    middle = ((torch.minimum(below, count) + torch.minimum(upto, count)) / (2.0 * count)).transpose(1, 2)
    # Half a rank from the ends keeps the normal score finite.
    edge = 0.5 / count.transpose(1, 2)
    # The rank as a normal quantile: Φ⁻¹(rank), whatever the column's own distribution was.
    score = math.sqrt(2.0) * torch.erfinv(2 * torch.minimum(torch.maximum(middle, edge), 1 - edge) - 1)
    # Cosines and sines of the rank at rising frequency: a column of a few codes falls on a few points, which a linear
    # layer can tell apart whatever their order.
    angle = math.pi * middle
    channels = [size, score, torch.tanh(2 * z)]
    channels += [
        torch.cos(angle),
        torch.cos(2 * angle),
        torch.sin(2 * angle),
        torch.cos(4 * angle),
        torch.sin(4 * angle),
    ]
    seen = known.to(size.dtype)
    about = columns.about[:, None].expand(*x.shape, 3)
    # The last shown channel says that the value is known at all: a known mean is not an unknown value.
    shown = torch.stack([*channels, torch.ones_like(size)], dim=-1) * seen[..., None]
    return torch.cat([shown, about], dim=-1)


def _quantile(ordered: Tensor, count: Tensor, level: float) -> Tensor:
    """The `level` quantile (nearest rank) of each column's observed values; 0 where there are none."""
    rank = ((count - 1) * level).round().long()
    value = ordered.gather(-1, rank[..., None])[..., 0]
    return torch.where(value.isfinite(), value, torch.zeros_like(value))

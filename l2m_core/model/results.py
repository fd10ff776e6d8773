"""What a result that is not yet known may be: a distribution over the ranks of its column.

The rank of a value is the share of the context's recorded values below it. A level of a category, or a number that many
rows share, covers an interval of ranks as long as its share of the column. So one density over 0 … 1 serves numbers and
categories of any unit, and a flat one, which is what an untrained head gives, is the column's own distribution.
"""

from __future__ import annotations

import torch
from torch import Tensor

from l2m_core.model.columns import Columns

# Where a distribution over many values is tried: more densely in its tails, where rare and telling results lie.
CHANCES = (0.05, 0.15, 0.2, 0.2, 0.2, 0.15, 0.05)
POINTS = (0.025, 0.125, 0.3, 0.5, 0.7, 0.875, 0.975)  # the middle of each
MOST_LEVELS = 8  # of a column with so few different values, each is tried


def rank_interval(columns: Columns, x: Tensor) -> tuple[Tensor, Tensor]:
    """(B, n, d) values → the ranks where each begins and ends, (B, n, d) each, in 0 … 1."""
    values = x.float().transpose(1, 2).contiguous()
    count = columns.count.clamp_min(1)[..., None]  # (B, d, 1)
    # `ordered` holds +inf beyond the recorded values, so counts stop at theirs.
    below = torch.minimum(torch.searchsorted(columns.ordered, values, right=False), count).float()
    upto = torch.minimum(torch.searchsorted(columns.ordered, values, right=True), count).float()
    # A value that no row of the context has lies between two of them; it gets the room of one row around that place.
    is_new = below == upto
    low = torch.where(is_new, below - 0.5, below).clamp_min(0) / count
    high = torch.minimum(torch.where(is_new, upto + 0.5, upto), count.float()) / count
    return low.transpose(1, 2), high.transpose(1, 2)


def cumulative(logits: Tensor) -> Tensor:
    """(…, V) logits of equal bins of the ranks → (…, V + 1) probability up to each edge."""
    return torch.nn.functional.pad(logits.float().softmax(-1).cumsum(-1), (1, 0))


def probability_up_to(edges: Tensor, rank: Tensor) -> Tensor:
    """edges: (…, V + 1) of `cumulative`; rank: (…, m) in 0 … 1 → (…, m) probability of a rank up to it."""
    bins = edges.shape[-1] - 1
    position = rank * bins
    left = position.floor().clamp(0, bins - 1).long()
    # The density is constant within a bin, so the probability grows in a straight line between its edges.
    start, end = edges.gather(-1, left), edges.gather(-1, left + 1)
    return start + (position - left) * (end - start)


def rank_at(edges: Tensor, level: Tensor) -> Tensor:
    """The inverse of `probability_up_to`: (…, m) levels in 0 … 1 → (…, m) ranks."""
    bins = edges.shape[-1] - 1
    right = torch.searchsorted(edges.contiguous(), level.contiguous(), right=False).clamp(1, bins)
    start, end = edges.gather(-1, right - 1), edges.gather(-1, right)
    return (right - 1 + ((level - start) / (end - start).clamp_min(1e-9)).clamp(0, 1)) / bins


def position_at(rank: Tensor, count: Tensor) -> Tensor:
    """Which of `count` sorted values lies at a rank in 0 … 1: the first that as many are up to."""
    # A thousandth of a row keeps 0.3 · 100, which is a little more than 30 in binary, at the 30th.
    return torch.minimum((rank * count - 1e-3).ceil().long() - 1, count - 1).clamp_min(0)


def value_loss(logits: Tensor, columns: Columns, x: Tensor) -> Tensor:
    """(B, n, d) log loss of results x, in nats above that of the column's own distribution (0 of a flat density).

    logits: (B, n, d, V). A column without a recorded value in the context counts 0.
    """
    low, high = rank_interval(columns, x)
    between = probability_up_to(cumulative(logits), torch.stack([low, high], dim=-1))
    share = (between[..., 1] - between[..., 0]) / (high - low).clamp_min(1e-6)
    return -share.clamp_min(1e-6).log() * (columns.count > 0)[:, None]


Levels = tuple[Tensor, Tensor, Tensor]
"""Of columns: their first values, how many rows lie up to each, and how many different ones there are; see `_levels`."""


def results_to_try(
    logits: Tensor, columns: Columns, features: Tensor, levels: Levels | None = None
) -> tuple[Tensor, Tensor]:
    """A few results of each of some features, and how likely each is: what a sum over all results is replaced by.

    logits: (B, n, m, V) of the features (B, n, m) → (B, n, m, MOST_LEVELS) values that the context has, and their chances,
    1 in all; a slot that is not needed has a chance of 0. levels: those of `features`, where they are known already.
    """
    B, n, m = features.shape
    edges = cumulative(logits)
    which = features.flatten(1)  # (B, n · m)
    ordered = columns.ordered.gather(1, which[..., None].expand(-1, -1, columns.ordered.shape[-1]))
    count = columns.count.clamp_min(1).gather(1, which)[..., None]  # (B, n · m, 1)
    values, ends, distinct = _levels(ordered, count) if levels is None else levels
    # Few different values: each, with the probability between the ranks where it begins and ends.
    up_to = probability_up_to(edges, (ends / count).view(B, n, m, -1))
    of_levels = torch.diff(up_to, dim=-1, prepend=torch.zeros_like(up_to[..., :1]))
    # Many: those at fixed points of the distribution; the last slot stays empty.
    points = edges.new_tensor([*POINTS, 1.0]).expand(B, n, m, -1)
    position = position_at(rank_at(edges, points).view(B, n * m, -1), count)
    at_points = ordered.gather(-1, position)
    is_few = (distinct <= MOST_LEVELS).view(B, n, m, 1)
    chances = torch.where(is_few, of_levels, edges.new_tensor([*CHANCES, 0.0]))
    return torch.where(is_few, values.view(B, n, m, -1), at_points.view(B, n, m, -1)), chances


def levels_of(columns: Columns) -> Levels:
    """Of all columns."""
    return _levels(columns.ordered, columns.count.clamp_min(1)[..., None])


def _levels(ordered: Tensor, count: Tensor) -> Levels:
    """The first MOST_LEVELS different values of sorted rows, how many values lie up to each, and how many there are.

    ordered: (B, f, N), +inf beyond `count`: (B, f, 1) → (B, f, MOST_LEVELS) twice, and (B, f).
    """
    is_new = (ordered[..., 1:] != ordered[..., :-1]) & ordered[..., 1:].isfinite()
    number = torch.nn.functional.pad(is_new.long().cumsum(-1), (1, 0))  # (B, f, N) which different value each one is
    steps = torch.arange(MOST_LEVELS, device=ordered.device).expand(*ordered.shape[:2], -1).contiguous()
    # What lies beyond `count` repeats the last number, so counts stop at theirs; so do levels that there are not.
    ends = torch.minimum(torch.searchsorted(number, steps, right=True), count)
    return ordered.gather(-1, (ends - 1).clamp_min(0)), ends, number[..., -1] + 1

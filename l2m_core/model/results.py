"""What a result that is not yet known may be: a distribution over the ranks of its column.

The rank of a value is the share of the context's recorded values below it. A level of a category, or a number that many
rows share, covers an interval of ranks as long as its share of the column. So one density over 0 … 1 serves numbers and
categories of any unit, and a flat one, which is what an untrained head gives, is the column's own distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from l2m_core.model.columns import Columns

# Where a distribution over many values is tried: more densely in its tails, where rare and telling results lie.
CHANCES = (0.05, 0.15, 0.2, 0.2, 0.2, 0.15, 0.05)
POINTS = (0.025, 0.125, 0.3, 0.5, 0.7, 0.875, 0.975)  # the middle of each
MOST_LEVELS = 8  # of a column with so few different values, each is tried
# Where many rows share a value (none found, below what the laboratory can tell) it is tried with its own chance, and the others
# at these points of what remains: else a result that few have, and that tells much, lies between two points and counts nothing.
SHARED_SHARE = 0.1  # of a column's recorded rows
MOST_SHARED = 3  # values
OTHER_CHANCES = (0.1, 0.2, 0.4, 0.2, 0.1)
OTHER_POINTS = (0.05, 0.2, 0.5, 0.8, 0.95)  # the middle of each
LEAST_CHANCE = 1e-4  # of a result; what is less likely is not worth being asked about


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


@dataclass(frozen=True)
class SharedValues:
    """The values that many rows share, of d columns of one context; a slot that is not needed has a rank of no length."""

    values: Tensor
    """(d, MOST_SHARED), rising"""
    ranks: Tensor
    """(d, MOST_SHARED, 2) where each begins and ends, in 0 … 1"""

    @classmethod
    def of(cls, columns: Columns) -> SharedValues:
        """Of a context of one task (B = 1)."""
        d = columns.ordered.shape[1]
        values, ranks = torch.zeros(d, MOST_SHARED), torch.zeros(d, MOST_SHARED, 2)
        for column, (ordered, count) in enumerate(zip(columns.ordered[0], columns.count[0].tolist(), strict=True)):
            distinct, times = torch.unique_consecutive(ordered[:count], return_counts=True)
            most = times.argsort(descending=True, stable=True)[:MOST_SHARED]
            shared = most[times[most] >= SHARED_SHARE * count].sort().values
            ends = times.cumsum(0)[shared]
            values[column, : len(shared)] = distinct[shared]
            ranks[column, : len(shared)] = torch.stack([ends - times[shared], ends], -1) / max(1, count)
        return cls(values, ranks)

    def results(self, logits: Tensor, columns: Columns) -> tuple[Tensor, Tensor, Tensor]:
        """As `results_to_try`, of all columns of one row: (d, MOST_LEVELS) values and chances, and (d,) where any value is
        shared, so that they are to be used. logits: (d, V)"""
        edges = cumulative(logits)
        up_to = probability_up_to(edges, self.ranks.flatten(1)).view(self.ranks.shape)
        starts, mass = up_to[..., 0], (up_to[..., 1] - up_to[..., 0]).clamp_min(0)
        rest = (1 - mass.sum(-1, keepdim=True)).clamp_min(0)
        others = rest * edges.new_tensor(OTHER_POINTS)
        # From a level of what remains to one of the whole: each shared value that lies below it adds its chance.
        level = others.clone()
        for number in range(MOST_SHARED):
            remains_below = starts[:, number] - mass[:, :number].sum(-1)
            level += torch.where(others > remains_below[:, None], mass[:, number, None], 0.0)
        position = position_at(rank_at(edges, level), columns.count[0, :, None].clamp_min(1))
        values = torch.cat([self.values, columns.ordered[0].gather(-1, position)], -1)
        chances = torch.cat([mass, rest * edges.new_tensor(OTHER_CHANCES)], -1)
        chances = torch.where(chances < LEAST_CHANCE, 0.0, chances)
        return values, chances / chances.sum(-1, keepdim=True), (self.ranks[..., 1] > 0).any(-1)


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

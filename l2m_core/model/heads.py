"""Heads: from tokens to predictions, policy logits and gains. Shared by both encoders."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from l2m_core.model.attention import attend


class Readout(nn.Module):
    """Norm, one hidden layer, then `out` numbers per token."""

    def __init__(self, width: int, out: int, inputs: int = 1):
        super().__init__()
        self.norm = nn.LayerNorm(width * inputs)
        self.hidden = nn.Linear(width * inputs, width)
        self.out = nn.Linear(width, out)
        # Zero at the start: a fresh model says that every class, and every feature, is alike.
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.read(self.features(tokens))

    def features(self, tokens: Tensor) -> Tensor:
        """(…, width) the hidden layer."""
        return F.silu(self.hidden(self.norm(tokens)))

    def read(self, features: Tensor) -> Tensor:
        return self.out(features).float()


class PairReadout(nn.Module):
    """One number for each feature from (feature token, outcome token)."""

    def __init__(self, width: int):
        super().__init__()
        self.readout = Readout(width, 1, inputs=2)

    def forward(self, features: Tensor, outcome: Tensor) -> Tensor:
        """features: (B, n, d, width), outcome: (B, n, width) → (B, n, d)."""
        return self.read(self.features(features, outcome))

    def features(self, features: Tensor, outcome: Tensor) -> Tensor:
        """(B, n, d, width) the hidden layer, of which the number of each feature is made."""
        both = torch.cat([features, outcome[:, :, None].expand_as(features)], dim=-1)
        return self.readout.features(both)

    def read(self, hidden: Tensor) -> Tensor:
        return self.readout.read(hidden)[..., 0]


LEAST_VOTE = 0.01  # keeps the logarithm of a class that nobody votes for within bounds


class Vote(nn.Module):
    """Logits from the classes of the context rows that a query resembles.

    It says the same whichever code a class has, so what it learns on two classes holds for ten. A fresh one is silent.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.to_q = nn.Linear(width, width, bias=False)
        self.sharpen = nn.Parameter(torch.zeros(width))
        self.weight = nn.Parameter(torch.zeros(heads))

    def forward(self, outcome: Tensor, k: Tensor, labels: Tensor, length: float) -> Tensor:
        """outcome: (B, n, width), k: (B, heads, N, h), labels: (B, N, K) one-hot → (B, n, K).

        length: log of the context's length in units of the length at which attention starts unscaled.
        """
        # As in the blocks: sharper for longer contexts, by a learned factor for each channel.
        sharp = (1 + length * self.sharpen) / math.sqrt(k.shape[-1])
        q = F.linear(self.norm(outcome), (self.to_q.weight * sharp[:, None]).to(outcome.dtype))
        q = q.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, heads, n, h)
        # The labels are the values: each head returns the class frequencies of the rows that it attends to.
        votes = attend(q, k, labels[:, None].expand(-1, self.heads, -1, -1).to(q.dtype))  # (B, heads, n, K)
        # Log frequencies add to logits. The weights begin at 0, so a fresh vote is silent.
        return ((votes.float() + LEAST_VOTE).log() * self.weight.float()[:, None, None]).sum(1)


KNEE = 0.02  # nats; above it a gain is about linear in what the head puts out, below it falls off towards 0
STEEPNESS = 10.0


def to_gain(raw: Tensor) -> Tensor:
    """A gain in nats is never negative; small at the start, so that an untrained head promises nothing.

    With a knee at gains as large as most, a head that once promised nothing still gets a gradient.
    """
    return KNEE * F.softplus(STEEPNESS * raw)


def keep_possible_classes(logits: Tensor, n_classes: Tensor) -> Tensor:
    """(B, n, K) logits with classes that a task does not have at -inf."""
    exists = torch.arange(logits.shape[-1], device=logits.device) < n_classes[:, None]
    return logits.masked_fill(~exists[:, None], float("-inf"))

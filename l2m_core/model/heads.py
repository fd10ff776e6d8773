"""Heads: from tokens to predictions, policy logits and gains. Shared by both encoders."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Readout(nn.Module):
    """Norm, one hidden layer, then `out` numbers per token."""

    def __init__(self, width: int, out: int, inputs: int = 1):
        super().__init__()
        self.norm = nn.LayerNorm(width * inputs)
        self.hidden = nn.Linear(width * inputs, width)
        self.out = nn.Linear(width, out)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(F.silu(self.hidden(self.norm(tokens)))).float()


class PairReadout(nn.Module):
    """One number for each feature from (feature token, outcome token)."""

    def __init__(self, width: int):
        super().__init__()
        self.readout = Readout(width, 1, inputs=2)

    def forward(self, features: Tensor, outcome: Tensor) -> Tensor:
        """features: (B, n, d, width), outcome: (B, n, width) → (B, n, d)."""
        both = torch.cat([features, outcome[:, :, None].expand_as(features)], dim=-1)
        return self.readout(both)[..., 0]


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

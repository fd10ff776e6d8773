"""Attention and the small blocks around it, shared by both encoders."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Rows of queries below which plain matrix products beat the fused kernel on a CPU.
FEW_QUERIES = 4
SHORT = 64  # keys; so few are read with plain products on a GPU too, whose fused kernel takes at most 65,535 batches


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """(…, heads, n, h) over (…, heads, N, h); q is already scaled; mask: (n, N) bool, True where read.

    Plain matmuls in CPU training, where the fused kernel's backward is slow for small heads, and for a few queries,
    where it does not pay. Elsewhere the fused kernel, which never holds the (n, N) scores; it takes exactly one batch
    dimension.
    """
    few = q.shape[-2] <= FEW_QUERIES
    is_short = max(q.shape[-2], k.shape[-2]) <= SHORT
    if (q.is_cuda and not is_short) or not (q.is_cuda or few or torch.is_grad_enabled()):
        # (…, heads, n, h) → (batch, heads, n, h): the kernel knows one batch dimension only. `expand` copies nothing
        # until `flatten`, which must.
        k, v = (t.expand(*q.shape[:-2], *t.shape[-2:]).flatten(0, -4) for t in (k, v))
        read = F.scaled_dot_product_attention(q.flatten(0, -4), k, v, attn_mask=mask, scale=1.0)
        return read.view(*q.shape[:-1], v.shape[-1])
    # (…, heads, n, N): the only tensor here that grows with queries times context.
    scores = q @ k.transpose(-1, -2)
    if mask is not None:
        # -inf becomes a weight of exactly 0, so what is masked cannot leak by rounding.
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ v


class SelfAttention(nn.Module):
    """Multi-head attention over the second-last axis; projections are public so that keys can be cached."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k = nn.Linear(width, width, bias=False)
        self.to_v = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        nn.init.zeros_(self.out.weight)

    def remember(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(…, N, width) tokens → keys and values, each (…, heads, N, width / heads)."""
        return self._split(self.to_k(tokens)), self._split(self.to_v(tokens))

    def read(self, tokens: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, sharp: Tensor | None = None):
        """(…, n, width) tokens read what `remember` gave. `sharp`: (width,) factors on the queries.

        Scaling the small weight instead of the many queries is exact and saves a pass over them.
        """
        # 1 / sqrt(h), as h = width / heads.
        scale = math.sqrt(self.heads / tokens.shape[-1])
        weight = self.to_q.weight * (scale if sharp is None else scale * sharp[:, None])
        q = self._split(F.linear(tokens, weight.to(tokens.dtype)))
        return self.out(self._merge(attend(q, k, v, mask)))

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.read(tokens, *self.remember(tokens), mask)

    def _split(self, tokens: Tensor) -> Tensor:
        # (…, N, width) → (…, heads, N, h)
        return tokens.unflatten(-1, (self.heads, -1)).transpose(-2, -3)

    def _merge(self, tokens: Tensor) -> Tensor:
        # (…, heads, N, h) → (…, N, width)
        return tokens.transpose(-2, -3).flatten(-2)


class FeedForward(nn.Module):
    """Two layers with SiLU; the output starts at zero so that a fresh block changes nothing."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.inner = nn.Linear(width, hidden, bias=False)
        self.out = nn.Linear(hidden, width, bias=False)
        nn.init.zeros_(self.out.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(F.silu(self.inner(tokens)))

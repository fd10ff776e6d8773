"""Picks of a feature that carry a gradient: hard on the way forward, a softmax on the way back."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

LEAST_UNIFORM = 1e-9


def straight_through(noisy: Tensor, is_open: Tensor, temperature: float) -> Tensor:
    """One-hot of the best open feature on the way forward, the softmax on the way back; 0 where nothing is open."""
    # â = softmax((log π + ε) / η): a lower η is closer to the hard pick, with a noisier gradient.
    soft = open_softmax(noisy / temperature, is_open)
    # Blocked actions can never win the argmax; where nothing is open the product below makes the row 0.
    hard = one_hot(noisy.masked_fill(~is_open, float("-inf")).argmax(-1), noisy.shape[-1]) * is_open
    # Forward the bracket is exactly 0, so the value is one-hot; backward only `soft` has a gradient.
    return hard + (soft - soft.detach())


def open_softmax(logits: Tensor, is_open: Tensor) -> Tensor:
    """The blocked policy: probabilities over what is open, all 0 where nothing is."""
    # -1e9 instead of -inf: a row with nothing open would else be NaN; the product makes it 0.
    chance = logits.masked_fill(~is_open, -1e9).softmax(-1)
    return chance * is_open


def one_hot(index: Tensor, size: int) -> Tensor:
    """Float; all 0 for an index of -1."""
    return F.one_hot(index.clamp_min(0), size).float() * (index >= 0)[..., None]


def gumbel(uniform: Tensor) -> Tensor:
    # ε = -log(-log u); clamped because u = 0 or 1 would give an infinite noise.
    return -(-uniform.clamp(LEAST_UNIFORM, 1 - 1e-7).log()).log()

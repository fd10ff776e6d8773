"""From scores to outcomes: prevalence by a bias, a draw of each row's outcome, and the truth that goes with it."""

from __future__ import annotations

import torch
from torch import Tensor

from l2m_core.tasks.batch import Truth
from l2m_core.tasks.draws import categorical, normal


def match_prevalence(logit: Tensor, prevalence: Tensor) -> Tensor:
    """logit: (B, N), prevalence: (B,) → (B,) bias such that the mean of sigmoid(logit + bias) is the prevalence."""
    target = torch.logit(prevalence)
    # At these ends every row lies below, or above, the target, so the bias is between them.
    low, high = target - logit.amax(dim=1), target - logit.amin(dim=1)
    # Bisection: the mean of the sigmoids rises with the bias. 40 halvings reach the precision of float32.
    for _ in range(40):
        middle = (low + high) / 2
        too_low = torch.sigmoid(logit + middle.unsqueeze(1)).mean(dim=1) < prevalence
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    return (low + high) / 2


def draw_classes(
    generator: torch.Generator, logits: Tensor, n_classes: Tensor, prevalence: Tensor
) -> tuple[Tensor, Tensor]:
    """logits: (B, N, K), n_classes: (B,), prevalence: (B,) → y: (B, N) int64 and p(y | x): (B, N, K).

    Binary tasks are shifted to their prevalence; in the others, `prevalence` is not used.
    """
    K = logits.shape[-1]
    bias = match_prevalence(logits[..., 1] - logits[..., 0], prevalence)
    shift = torch.zeros_like(logits[:, 0])
    shift[:, 1] = torch.where(n_classes == 2, bias, torch.zeros_like(bias))
    # -inf gives classes that a task does not have a probability of exactly 0.
    absent = torch.arange(K, device=logits.device) >= n_classes.unsqueeze(1)
    probabilities = (logits + shift.unsqueeze(1)).masked_fill(absent.unsqueeze(1), float("-inf")).softmax(dim=-1)
    return categorical(generator, probabilities), probabilities


def draw_continuous(generator: torch.Generator, mean: Tensor, std: Tensor) -> tuple[Tensor, Truth]:
    """mean, std: (B, N) → y: (B, N) float32 with normal noise, and its truth."""
    return mean + std * normal(generator, tuple(mean.shape)), Truth(mean=mean, std=std)

"""What an additive outcome is made of, and what a context tells of it: how much each part counts is integrated out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.draws import columns_at, normal, polya_gamma, uniform

PRODUCTS = 6  # pairs of features
LEAST_SPREAD = 1e-3  # of a weight: of a part that does not count
GUESSES = 48  # of what is not known of a query
BURN_IN = 16  # draws of weights that are left out


@dataclass(frozen=True)
class Form:
    """What an outcome is made of, but for the weights of its M terms.

    z: (B, N, d) latent covariates, normal with `covariance` (B, d, d); seen: (B, N, d) what the terms read;
    curve: (B, 1, d) which curve each feature counts by, with `cut` and `second`; first, other: (B, P) pairs;
    frequency: (B, d, R), phase: (B, 1, R) of waves; middle, size: (B, 1, M) of the terms over the rows;
    spread: (B, M) standard deviations of the weights; noise, shift, scale, bend: (B, 1) of a continuous outcome.
    """

    z: Tensor
    covariance: Tensor
    seen: Tensor
    curve: Tensor
    cut: Tensor
    second: Tensor
    first: Tensor
    other: Tensor
    frequency: Tensor
    phase: Tensor
    middle: Tensor
    size: Tensor
    spread: Tensor
    noise: Tensor
    shift: Tensor
    scale: Tensor
    bend: Tensor

    def terms(self, seen: Tensor) -> Tensor:
        """(B, n, d) → (B, n, M): every feature by its curve, products, waves, and a constant."""
        return (self._raw_terms(seen) - self.middle) / self.size

    @property
    def reads(self) -> Tensor:
        """(B, d) bool, the features that count, by themselves, in a pair or in waves."""
        d = self.z.shape[2]
        counts = self.spread > LEAST_SPREAD  # (B, M)
        pairs = torch.zeros_like(self.spread[:, :d]).scatter_add(1, self.first, counts[:, d : d + PRODUCTS].float())
        pairs = pairs.scatter_add(1, self.other, counts[:, d : d + PRODUCTS].float())
        return counts[:, :d] | (pairs > 0) | counts[:, d + PRODUCTS : -1].any(1, keepdim=True)

    def to_outcome(self, score: Tensor) -> Tensor:
        """(B, …) a continuous outcome on its own scale."""
        bent = (score * self.bend).clamp(-6.0, 6.0).exp()
        return self.shift + self.scale * torch.where(self.bend > 0, bent, score)

    def to_score(self, y: Tensor) -> Tensor:
        plain = (y - self.shift) / self.scale
        return torch.where(self.bend > 0, plain.clamp_min(1e-3).log() / self.bend.clamp_min(1e-6), plain)

    def _raw_terms(self, seen: Tensor) -> Tensor:
        beyond = seen - self.cut
        curved = seen
        for index, candidate in enumerate(
            (
                (beyond > 0).to(seen.dtype),
                (beyond > 0).to(seen.dtype) + (seen > self.second),
                beyond.clamp_min(0),
                beyond.abs(),
                torch.tanh(2 * beyond),
            )
        ):
            curved = torch.where(self.curve == index + 1, candidate, curved)
        products = columns_at(seen, self.first) * columns_at(seen, self.other)
        waves = torch.cos(seen @ self.frequency + self.phase)
        return torch.cat([curved, products.clamp(-6.0, 6.0), waves, torch.ones_like(seen[..., :1])], dim=-1)

    def best_answers(self, tasks: TaskBatch, context: int, a: Tensor, generator: torch.Generator) -> Tensor:
        """(B, n, 2) p(class) of the queries after `context`, or (B, n, S) draws of a continuous outcome; a: (B, n, d) known."""
        seen = _guesses(self, context, a, generator)  # (S, B, n, d)
        known, y = self.terms(self.seen[:, :context]).double(), tasks.y[:, :context]
        if tasks.n_classes is None:
            return _continuous_answers(self, known, y, seen, generator)
        p = _class_answers(self, known, y, seen, generator)
        return torch.stack([1 - p, p], -1)


def _guesses(form: Form, context: int, a: Tensor, generator: torch.Generator) -> Tensor:
    """(S, B, n, d): what terms read of queries; what is not known is drawn given what is."""
    z, seen = form.z[:, context:], form.seen[:, context:]
    tasks, n, d = z.shape
    root = torch.linalg.cholesky(form.covariance + 1e-5 * torch.eye(d, device=z.device))
    free = normal(generator, (GUESSES, tasks, n, d)) @ root.transpose(1, 2)
    # Matheron: a free draw, moved by what it has to differ by where values are known.
    known = a.to(z.dtype)
    both = form.covariance[:, None] * known[..., None] * known[..., None, :]  # (B, n, d, d)
    both = both + torch.diag_embed(1 - known + 1e-4)
    off = ((z - free) * known).permute(1, 2, 3, 0)  # (B, n, d, S)
    moved = torch.cholesky_solve(off, torch.linalg.cholesky(both)) * known[..., None]
    drawn = free + (form.covariance[:, None] @ moved).permute(3, 0, 1, 2)
    return torch.where(a, seen, _as_seen(form, drawn))


def _as_seen(form: Form, drawn: Tensor) -> Tensor:
    """(S, B, n, d) latent → what terms read: that of the row whose latent quantity comes next."""
    ordered, order = form.z.transpose(1, 2).contiguous().sort(-1)  # (B, d, N)
    seen = form.seen.transpose(1, 2).gather(2, order)
    S, B, n, d = drawn.shape
    at = torch.searchsorted(ordered, drawn.permute(1, 3, 0, 2).reshape(B, d, S * n).contiguous())
    found = seen.gather(2, at.clamp_max(ordered.shape[-1] - 1))
    return found.view(B, d, S, n).permute(2, 0, 3, 1)


def _class_answers(form: Form, known: Tensor, y: Tensor, seen: Tensor, generator: torch.Generator) -> Tensor:
    """(B, n) p(class 1), averaged over guesses, each with weights of its own: draws from what the context tells of them.

    Gibbs sampling after Polson, Scott and Windle (2013): given a Pólya-Gamma draw for each row, weights are normal.
    """
    precision = torch.diag_embed(form.spread.double() ** -2)  # (B, M, M)
    slope = known.transpose(1, 2) @ (y.double() - 0.5)[..., None]  # (B, M, 1)
    weights = torch.zeros_like(slope)
    total = torch.zeros(seen.shape[1:3], dtype=torch.float64, device=seen.device)
    for index in range(-BURN_IN, len(seen)):
        each = polya_gamma(generator, (known @ weights)[..., 0])  # (B, c)
        root = torch.linalg.cholesky(precision + known.transpose(1, 2) @ (known * each[..., None]))
        free = normal(generator, tuple(slope.shape)).double()
        # N(H⁻¹ s, H⁻¹) with H = L Lᵀ: L⁻ᵀ (L⁻¹ s + e)
        half = torch.linalg.solve_triangular(root, slope, upper=False) + free
        weights = torch.linalg.solve_triangular(root.transpose(1, 2), half, upper=True)
        if index >= 0:
            total = total + torch.sigmoid((form.terms(seen[index]).double() @ weights)[..., 0])
    return (total / len(seen)).float()


def _continuous_answers(form: Form, known: Tensor, y: Tensor, seen: Tensor, generator: torch.Generator) -> Tensor:
    """(B, n, S) draws of the outcome, one for each guess, spread evenly over their distributions."""
    precision = torch.diag_embed(form.spread.double() ** -2)
    noise = form.noise.double() ** 2  # (B, 1)
    target = form.to_score(y).double()
    curvature = precision + known.transpose(1, 2) @ known / noise[..., None]
    slope = (known.transpose(1, 2) @ target[..., None])[..., 0] / noise
    weights = torch.linalg.solve(curvature, slope[..., None])[..., 0]
    S, B, n, _ = seen.shape
    order = uniform(generator, (S, B, n)).argsort(0)
    level = ((order + uniform(generator, (S, B, n))) / S).clamp(1e-4, 1 - 1e-4)
    off = math.sqrt(2.0) * torch.erfinv(2 * level - 1)
    draws = []
    for guess, along in zip(seen, off, strict=True):
        mean, variance = _score(form.terms(guess).double(), weights, curvature)
        draws.append(form.to_outcome((mean + along * (variance + noise).sqrt()).float()))
    return torch.stack(draws, -1)


def _score(terms: Tensor, weights: Tensor, curvature: Tensor) -> tuple[Tensor, Tensor]:
    """(B, n) mean and variance of the scores of terms (B, n, M)."""
    mean = (terms @ weights[..., None])[..., 0]
    solved = torch.linalg.solve(curvature, terms.transpose(1, 2))  # (B, M, n)
    return mean, (terms.transpose(1, 2) * solved).sum(1)

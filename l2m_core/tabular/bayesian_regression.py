"""Bayesian logistic regression on partly known rows: averaged over how much each column may count.

With t(x) the encoded columns, the squares of numbers, and a constant,

    p(y = k | x) = the mean over draws of w of  softmax_k( w_k · E[t] / √(1 + π v_k / 8) ),   v_k = Σ_j w_kj² Var[t_j],

where E and Var are over what is unknown of the row (`Imputation`): what is left open of a score makes classes more alike, by
MacKay's approximation of a sigmoid's mean over a normal distribution. Weights are normal around 0. How far they spread is
unknown too, of columns and of squares apart (half-Cauchy), so that many columns that each tell a little are kept, and those that
tell nothing do not mislead. Weights are drawn by Gibbs sampling after Polson, Scott and Windle (2013).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from l2m_core.tabular.imputation import Imputation, Imputed
from l2m_core.tabular.partial_models import all_classes
from l2m_core.tabular.preparation import Context, seen_values
from l2m_core.tasks.draws import normal, polya_gamma

BURN_IN, SWEEPS, KEPT_EVERY = 100, 200, 4
"""Sweeps that are left out, sweeps after them, and which of those are kept."""
MOST_ROWS, MOST_CELLS = 2000, 60_000_000
"""Rows, and rows × columns × columns × classes, that it is fitted to, at most: a random part of a longer cohort."""
LEAST_ROWS = 300
"""However many columns and classes there are, it is fitted to so many."""
FEWEST_VALUES = 5
"""A number with fewer different values has no square of its own."""
TYPICAL = 2.0, 0.3
"""How far scores are spread by all columns together, and by all squares: the medians before any row has spoken."""
CONSTANT_SPREAD = 3.0  # standard deviation of the constant's weight
COLUMNS, SQUARES, CONSTANT = 0, 1, 2


class BayesianRegression:
    """Fitted to a cohort's rows, of which the outcome is a class."""

    def __init__(self, context: Context, random: np.random.Generator):
        self.imputation = Imputation(context)
        cells = self.imputation.encoding.width**2 * context.n_classes
        most = max(LEAST_ROWS, min(MOST_ROWS, MOST_CELLS // cells))
        if len(context.y) > most:
            context = context.rows(np.sort(random.permutation(len(context.y))[:most]))
        self.n_classes, self.n_rows = context.n_classes, len(context.y)
        self.squared = _many_valued(self.imputation.encoding.owner, context)
        rows = self.imputation(context.x, np.ones_like(context.x, dtype=bool))
        self.classes, codes = np.unique(context.y, return_inverse=True)
        # Of two classes one score tells all; of more each has its own.
        scored = [1] if len(self.classes) == 2 else range(len(self.classes))
        happened = torch.stack([torch.from_numpy(codes == k) for k in scored], 1).double()
        self.weights = _draw_weights(self._terms(rows), self._parts(rows), happened, random)  # (S, M, scores)

    def _terms(self, rows: Imputed) -> Tensor:
        """(n, M): E[t]."""
        square = (rows.middle.square() + rows.variance)[:, self.squared]
        return torch.cat([rows.middle, (square - 1) / 2, torch.ones_like(rows.middle[:, :1])], 1)

    def _parts(self, rows: Imputed) -> Tensor:
        """(M,) COLUMNS, SQUARES or CONSTANT."""
        sizes = torch.tensor([rows.middle.shape[1], len(self.squared), 1])
        return torch.tensor([COLUMNS, SQUARES, CONSTANT]).repeat_interleave(sizes)

    def predict(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        rows = self.imputation(x, a)
        score = torch.einsum("nm,smk->snk", self._terms(rows), self.weights)
        columns = self.weights[:, : rows.middle.shape[1]]
        open_yet = torch.einsum("nm,smk->snk", rows.variance, columns.square())
        score = score / (1 + math.pi / 8 * open_yet).sqrt()
        if len(self.classes) == 2:
            score = torch.cat([torch.zeros_like(score), score], -1)
        return all_classes(score.softmax(-1).mean(0).numpy(), self.classes, self.n_classes, self.n_rows)


def _many_valued(owner: np.ndarray, context: Context) -> Tensor:
    """The columns that are numbers with many values. owner: (D,) the feature of each column; a category has several."""
    values = np.array([len(seen_values(column)) for column in context.x.T])
    return torch.from_numpy(np.flatnonzero((np.bincount(owner)[owner] == 1) & (values[owner] >= FEWEST_VALUES)))


def _draw_weights(terms: Tensor, part: Tensor, happened: Tensor, random: np.random.Generator) -> Tensor:
    """(S, M, scores) weights. terms: (n, M); part: (M,); happened: (n, scores), 1 where the row has the class of the score."""
    generator = torch.Generator().manual_seed(int(random.integers(2**62)))
    weights = terms.new_zeros(terms.shape[1], happened.shape[1])
    # Variances of the weights of each part, and the helpers that make a half-Cauchy of two inverse gammas.
    typical = [size / int((part == one).sum().clamp_min(1)) ** 0.5 for one, size in enumerate(TYPICAL)]
    variance, helper = terms.new_tensor([*(size**2 for size in typical), CONSTANT_SPREAD**2]), terms.new_ones(2)
    kept = []
    for sweep in range(-BURN_IN, SWEEPS):
        for k in range(happened.shape[1]):
            weights[:, k] = _draw_of_class(k, terms, weights, happened, 1 / variance[part], generator)
        for one in (COLUMNS, SQUARES):
            square = weights[part == one].square()
            # Inverse gammas: a rate over a standard gamma draw.
            variance[one] = (1 / helper[one] + square.sum() / 2) / random.gamma((square.numel() + 1) / 2)
            helper[one] = (typical[one] ** -2 + 1 / variance[one]) / random.gamma(1.0)
        if sweep >= 0 and sweep % KEPT_EVERY == 0:
            kept.append(weights.clone())
    return torch.stack(kept)


def _draw_of_class(
    k: int, terms: Tensor, weights: Tensor, happened: Tensor, precision: Tensor, generator: torch.Generator
) -> Tensor:
    """(M,) weights of score k, given those of the others: normal, given a Pólya-Gamma draw for each row."""
    score = terms @ weights  # (n, scores)
    others = torch.cat([score[:, :k], score[:, k + 1 :]], 1)
    # Class k against the others together is a logistic regression whose score is lower by this.
    rival = others.logsumexp(1) if others.shape[1] else torch.zeros_like(score[:, 0])
    each = polya_gamma(generator, score[:, k] - rival)  # (n,)
    root = torch.linalg.cholesky(terms.T @ (terms * each[:, None]) + torch.diag_embed(precision))
    slope = terms.T @ (happened[:, k] - 0.5 + each * rival)
    # N(H⁻¹ s, H⁻¹) with H = L Lᵀ: L⁻ᵀ (L⁻¹ s + e)
    half = torch.linalg.solve_triangular(root, slope[:, None], upper=False)
    half = half + normal(generator, tuple(half.shape)).double()
    return torch.linalg.solve_triangular(root.T, half, upper=True)[:, 0]

"""The calibration exponent of a cohort with more than two classes, found from the cohort's own rows.

A model that has seen few tasks with many classes is overconfident on one cohort and underconfident on another. So rows
are left out by cross-fitting and predicted from the rest, with random parts of them known. The predicted probabilities
p are raised to an exponent t and normalised again (t is one over a temperature). The t that minimises

    −Σ log [ p(y)^t / Σ_k p(k)^t ]   +   ½ (log t / spread)²,      the first sum over the rows left out,

is the exponent: a normal prior on log t keeps it near 1 where the rows tell little.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from l2m_core.cohort import Cohort

FOLDS = 4
MASKS = 3  # ways in which each row left out is asked about, the first with all that was recorded
FEWEST_ROWS, MOST_ROWS = 24, 240  # with fewer the folds tell nothing; with more: `python -m train long_cohorts`
# In equal steps of log t, so that sharper (t > 1) and flatter (t < 1) are searched alike.
EXPONENTS = np.exp(np.linspace(np.log(0.4), np.log(2.5), 81))

# From a cohort to a function from (n, d) values, NaN where unknown, to (n, K) probabilities.
Read = Callable[[Cohort], Callable[[np.ndarray], np.ndarray]]


def calibration_exponent(cohort: Cohort, read: Read, spread: float) -> float:
    """The exponent of this cohort, 1 where it cannot be found. spread: the prior standard deviation of its logarithm."""
    if not can_be_calibrated(cohort):
        return 1.0
    return best_exponent(*cross_fitted(cohort, read), spread)


def can_be_calibrated(cohort: Cohort) -> bool:
    """Whether the cohort has several classes, enough rows to judge by, and not so many that judging is not worth it."""
    return cohort.n_classes > 2 and FEWEST_ROWS <= len(cohort) <= MOST_ROWS


def cross_fitted(cohort: Cohort, read: Read) -> tuple[np.ndarray, np.ndarray]:
    """(MASKS · N, K) log probabilities of rows that were left out, and their classes."""
    generator = np.random.default_rng(0)
    fold = np.empty(len(cohort), dtype=np.int64)
    # Rows sorted by class are dealt to the folds in turn, so that each fold has its share of every class.
    fold[np.argsort(cohort.y, kind="stable")] = np.arange(len(cohort)) % FOLDS
    log_p, y = [], []
    for number in range(FOLDS):
        left_out = cohort.rows(fold == number)
        answer = read(cohort.rows(fold != number))
        shown = np.concatenate([left_out.x, *(hide_random_parts(left_out.x, generator) for _ in range(1, MASKS))])
        # All rows left out, under every mask, in one query.
        log_p.append(np.log(np.maximum(answer(shown), 1e-12)))
        y.append(np.tile(left_out.y, MASKS))
    return np.concatenate(log_p), np.concatenate(y)


def best_exponent(log_p: np.ndarray, y: np.ndarray, spread: float) -> float:
    """log_p: (m, K), each row MASKS times; y: (m,)."""
    loss = np.array([_log_loss(exponent * log_p, y) for exponent in EXPONENTS])
    penalty = 0.5 * (np.log(EXPONENTS) / spread) ** 2
    # The copies of a row are not independent evidence, so together they count once.
    return float(EXPONENTS[np.argmin(loss / MASKS + penalty)])


def _log_loss(logits: np.ndarray, y: np.ndarray) -> float:
    """Sum over rows, in nats."""
    # p^t normalised again is the softmax of t · log p.
    log_p = torch.from_numpy(logits).log_softmax(-1).numpy()
    return float(-log_p[np.arange(len(y)), y].sum())


def hide_random_parts(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """(n, d) float32 with values made NaN at random, of each row another share."""
    # Each row has its own share of hidden cells, since patients are asked about at every stage.
    return np.where(generator.random(x.shape) < generator.random((len(x), 1)), np.nan, x).astype(np.float32)

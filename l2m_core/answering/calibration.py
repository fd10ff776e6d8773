"""How sure predictions of more than two classes should be, as the cohort's own rows say.

A model that has seen few tasks with many classes is too sure in one cohort and not sure enough in another. So the cohort
is read again without a part of its rows, and those are asked about, known in random part. Of all exponents of the
predicted probabilities the one is taken under which the known classes are likeliest, held near 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from l2m_core.cohort import Cohort

FOLDS = 4
MASKS = 3  # ways in which each row left out is asked about, the first with all that was recorded
FEWEST_ROWS, MOST_ROWS = 24, 240  # with fewer the folds tell nothing; with more: `python -m train long_cohorts`
EXPONENTS = np.exp(np.linspace(np.log(0.4), np.log(2.5), 81))

# From a cohort to a function from (n, d) values, NaN where unknown, to (n, K) probabilities.
Read = Callable[[Cohort], Callable[[np.ndarray], np.ndarray]]


def sharpness_of(cohort: Cohort, read: Read, spread: float) -> float:
    """The exponent of this cohort. spread: about how far its logarithm may lie from 0."""
    if not tells(cohort):
        return 1.0
    return best_exponent(*cross_fitted(cohort, read), spread)


def tells(cohort: Cohort) -> bool:
    """Whether it is worth asking."""
    return cohort.n_classes > 2 and FEWEST_ROWS <= len(cohort) <= MOST_ROWS


def cross_fitted(cohort: Cohort, read: Read) -> tuple[np.ndarray, np.ndarray]:
    """(MASKS · N, K) log probabilities of rows that were left out, and their classes."""
    generator = np.random.default_rng(0)
    fold = np.empty(len(cohort), dtype=np.int64)
    fold[np.argsort(cohort.y, kind="stable")] = np.arange(len(cohort)) % FOLDS
    log_p, y = [], []
    for number in range(FOLDS):
        left_out = cohort.rows(fold == number)
        answer = read(cohort.rows(fold != number))
        shown = np.concatenate([left_out.x, *(_hidden_in_part(left_out.x, generator) for _ in range(1, MASKS))])
        log_p.append(np.log(np.maximum(answer(shown), 1e-12)))
        y.append(np.tile(left_out.y, MASKS))
    return np.concatenate(log_p), np.concatenate(y)


def best_exponent(log_p: np.ndarray, y: np.ndarray, spread: float) -> float:
    """log_p: (m, K), each row MASKS times; y: (m,)."""
    loss = np.array([_log_loss(exponent * log_p, y) for exponent in EXPONENTS])
    held = 0.5 * (np.log(EXPONENTS) / spread) ** 2
    return float(EXPONENTS[np.argmin(loss / MASKS + held)])


def _log_loss(logits: np.ndarray, y: np.ndarray) -> float:
    """Sum over rows, in nats."""
    log_p = torch.from_numpy(logits).log_softmax(-1).numpy()
    return float(-log_p[np.arange(len(y)), y].sum())


def _hidden_in_part(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return np.where(generator.random(x.shape) < generator.random((len(x), 1)), np.nan, x).astype(np.float32)

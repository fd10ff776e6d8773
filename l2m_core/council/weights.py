"""The weights of a product of voices, found from how each predicted rows that it had not learned from.

With p_im(k) the probability that voice m gave to class (or bin) k of row i, y_i what happened, and voice 0 the model,

    q_i(k) ∝ Π_m p_im(k)^w_m,   maximise   Σ_i log q_i(y_i)  −  [ (Σ_m w_m − 1)² + Σ_{m>0} (w_m − e_m)² ] / (2 s²),   w ≥ 0:

before any row has spoken, voices have the weights e that are expected of them, which sum to 1, give or take s; rows may hand
weight to others, and make the whole surer or less sure (a sum above or below 1). What is maximised is concave, so there is one
answer, and Newton's method finds it in a few steps.
"""

from __future__ import annotations

import numpy as np

LEAST = 0.05
"""A voice with less weight is not heard: what it adds is not worth being asked each time."""
MODEL_LEAST = 0.2
"""The model is always heard."""
ROUNDS = 100
SMALLEST = 1e-9
"""A probability counts as no smaller, so that no voice alone can rule an outcome out."""


def find_weights(
    p: np.ndarray, happened: np.ndarray, spread: float, copies: int = 1, expected: np.ndarray | None = None
) -> np.ndarray:
    """(M,) weights, the model's first.

    p: (M, n, K) probabilities; happened: (n,) which of the K did; copies: rows that are the same patient's, and so count once
    together. Before any row has spoken: expected, (M - 1,) the weights beside the model's, None: 0; spread, the standard
    deviation of each of them, and of the sum of all."""
    log_p = logs_of(p)
    expected = np.zeros(len(p)) if expected is None else np.append(0.0, expected)
    heard = np.arange(len(p))
    while True:
        weights = _most_likely(log_p[heard], happened, copies, expected[heard], spread)
        # Of the voices beside the model, the one with least weight leaves first, if that is too little.
        faint = 1 + np.flatnonzero(weights[1:] < LEAST)
        if not len(faint):
            break
        heard = np.delete(heard, faint[weights[faint].argmin()])
    found = np.zeros(len(p))
    found[heard] = weights
    return found


def logs_of(p: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities."""
    return np.log(np.maximum(p, SMALLEST))


def product(log_p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, K) log probabilities of the product. log_p: (M, n, K); weights: (M,)"""
    total = np.tensordot(weights, log_p, axes=1)
    total -= total.max(1, keepdims=True)
    return total - np.log(np.exp(total).sum(1, keepdims=True))


def _most_likely(
    log_p: np.ndarray, happened: np.ndarray, copies: int, expected: np.ndarray, spread: float
) -> np.ndarray:
    """(M,) by Newton's method; a weight at its least value stays there unless the slope leads away from it."""
    model = np.eye(1, len(log_p))[0]
    # Of the model is expected what those that are heard beside it leave.
    expected = expected + (1 - expected.sum()) * model
    least = MODEL_LEAST * model
    rows = np.arange(len(happened))
    # One over the prior's covariance: (Σ (w − e))² and the squares of all but the model's, as a quadratic form.
    precision = (1 + np.diag(1 - model)) / spread**2

    def value(weights: np.ndarray) -> float:
        away = weights - expected
        return float(product(log_p, weights)[rows, happened].sum() / copies - away @ precision @ away / 2)

    weights = expected.copy()
    for _ in range(ROUNDS):
        q = np.exp(product(log_p, weights))  # (n, K)
        mean = (q * log_p).sum(2)  # (M, n): of each voice's logs under the product
        slope = (log_p[:, rows, happened] - mean).sum(1) / copies - precision @ (weights - expected)
        # Minus the second derivative: the covariance of the voices' logs under the product, summed over rows, and the prior's.
        covariance = np.einsum("nk,ank,bnk->ab", q, log_p, log_p) - mean @ mean.T
        curvature = covariance / copies + precision
        free = (weights > least) | (slope > 0)
        step = np.zeros(len(weights))
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        length = 1.0
        while value(moved := np.maximum(weights + length * step, least)) < value(weights) and length > 1e-4:
            length /= 2
        if np.abs(moved - weights).max() < 1e-7:
            break
        weights = moved
    return weights

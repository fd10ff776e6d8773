"""The weights of a blend, found from how each voice predicted rows that it had not learned from.

With p_im the probability (or density) that voice m gave to what happened to row i, and voice 0 the model,

    maximise   Σ_i log Σ_m w_m p_im   +   PULL · log w_0      over weights w ≥ 0 that sum to 1:

the second term holds the blend towards the model, as PULL further rows would that only the model foresaw.
"""

from __future__ import annotations

import numpy as np

PULL = 5.0
LEAST = 0.05
"""A voice with less weight is not heard: what it adds is not worth being asked each time."""
ROUNDS = 500


def find_weights(p: np.ndarray) -> np.ndarray:
    """(M,) weights, the model's first. p: (n, M) above 0, of rows that count once each."""
    heard = np.arange(p.shape[1])
    while True:
        weights = _most_likely(p[:, heard])
        # The model is always heard; of the others, the one with too little weight that has least leaves first.
        faint = 1 + np.flatnonzero(weights[1:] < LEAST)
        if not len(faint):
            break
        heard = np.delete(heard, faint[weights[faint].argmin()])
    found = np.zeros(p.shape[1])
    found[heard] = weights
    return found


def _most_likely(p: np.ndarray) -> np.ndarray:
    """Expectation maximisation: each row's outcome came from one voice; which, is known in shares."""
    weights = np.full(p.shape[1], 1 / p.shape[1])
    for _ in range(ROUNDS):
        joint = weights * p
        # E step: how likely each voice was the source of each row. M step: a voice's weight is its share of all rows, the
        # model's raised by the PULL rows of the prior.
        share = joint / joint.sum(1, keepdims=True)
        total = share.sum(0)
        total[0] += PULL
        weights = total / total.sum()
    return weights

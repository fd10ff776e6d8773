"""Random orders of acquisition. Everything that is drawn comes from the generator, or seed, that is passed."""

from __future__ import annotations

import numpy as np


def random_scores(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Scores of a random order for each row, the same whenever they are asked for: higher first."""
    return np.random.default_rng(seed).random(shape)


def random_positions(candidates: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """(n, d) int64: each candidate's position, from 0, in a random order of its row; all others come after them.

    candidates: (n, d) bool.
    """
    # Sorting twice turns random keys into ranks; 2 lies above every key that is drawn.
    return np.where(candidates, generator.random(candidates.shape), 2.0).argsort(1).argsort(1)

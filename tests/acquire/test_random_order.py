"""Random orders: of the candidates alone, all orders alike, and the same for the same seed."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from l2m_core.acquire.random_order import random_positions, random_scores


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 5))
def test_candidates_have_the_first_positions_and_each_position_is_taken_once(seed: int, rows: int, d: int) -> None:
    generator = np.random.default_rng(seed)
    candidates = generator.random((rows, d)) < 0.5
    positions = random_positions(candidates, generator)
    assert np.sort(positions, axis=1).tolist() == [list(range(d))] * rows
    for row, own in zip(positions, candidates, strict=True):
        assert sorted(row[own]) == list(range(own.sum()))


def test_every_order_is_equally_likely() -> None:
    positions = random_positions(np.ones((6000, 3), dtype=bool), np.random.default_rng(0))
    counts = [int((positions == order).all(1).sum()) for order in permutations(range(3))]
    assert sum(counts) == 6000 and max(counts) < 1150 and min(counts) > 850


def test_scores_of_a_random_order_follow_from_the_seed() -> None:
    first, again, other = random_scores((4, 5), 1), random_scores((4, 5), 1), random_scores((4, 5), 2)
    assert (first == again).all() and (first != other).any()

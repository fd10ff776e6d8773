"""Classes from the most to the least frequent."""

from __future__ import annotations

import torch

from l2m_core.tasks.class_order import class_ranks


def test_classes_are_ranked_by_frequency_and_equals_by_what_was_seen_first() -> None:
    y = torch.tensor([[3, 1, 1, 0, 0, 3, 4, 1], [0, 1, 0, 1, 2, 2, 2, 2]])
    # Of the first, 3 comes before 0; 2 has no row. Of the second, neither 3 nor 4 has one.
    assert class_ranks(y, 5).tolist() == [[2, 0, 4, 1, 3], [1, 2, 0, 3, 4]]

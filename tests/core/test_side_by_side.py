"""Pieces of work on two cores: all done, in order, whoever does them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from l2m_core.answering.parallel import in_turn, side_by_side
from l2m_core.cohort import Cohort
from l2m_core.memory import L2M


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_two_pieces_are_worked_on_at_once() -> None:
    met = threading.Barrier(2, timeout=20)  # passed only if both are there
    assert side_by_side([met.wait, met.wait]) in ([0, 1], [1, 0])


@pytest.mark.usefixtures("one_thread")
def test_what_the_helper_does_not_come_to_the_caller_does() -> None:
    busy, go_on = threading.Event(), threading.Event()

    def hold() -> int:
        busy.set()
        go_on.wait(20)
        return 0

    other = threading.Thread(target=side_by_side, args=([busy.wait, hold],))
    other.start()
    assert busy.wait(20)
    try:
        assert side_by_side([lambda number=number: number for number in range(4)]) == [0, 1, 2, 3]  # type: ignore[misc]
    finally:
        go_on.set()
        other.join()


@pytest.mark.usefixtures("one_thread")
def test_a_failure_is_the_callers() -> None:
    def fail() -> int:
        raise ValueError("no")

    for calls in ([fail, lambda: 1], [lambda: 1, fail]):
        with pytest.raises(ValueError, match="no"):
            side_by_side(calls)


def test_where_torch_has_several_threads_it_keeps_the_cores_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    here = threading.get_ident()
    assert side_by_side([threading.get_ident] * 3) == [here] * 3


@pytest.mark.usefixtures("one_thread")
def test_answers_are_the_same_either_way(model: L2M) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(model.release.inference.care_rows + 10, 2)).astype(np.float32)
    memory = model.condition(Cohort.from_arrays(x, (x[:, 0] > 0).astype(np.int64)))
    assert len(memory.memories) == 2, "so long that the second view reads fewer rows"
    one, other = memory.query(x[:3], in_turn), memory.query(x[:3], side_by_side)
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a.prediction, b.prediction) and torch.equal(a.gain, b.gain)


@pytest.mark.usefixtures("one_thread")
def test_what_is_read_of_a_cohort_is_the_same_either_way(model: L2M) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(model.release.inference.care_rows + 10, 2)).astype(np.float32)
    cohort = Cohort.from_arrays(x, (x[:, 0] > 0).astype(np.int64))
    one, other = model.read(cohort, in_turn), model.read(cohort, side_by_side)
    for a, b in zip(one.memories, other.memories, strict=True):
        assert all(map(torch.equal, (*a.keys, *a.values), (*b.keys, *b.values)))

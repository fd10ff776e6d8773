"""Pieces of work on two cores: all done, in order, whoever does them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from l2m_core.answering import engine
from l2m_core.cohort import Cohort
from l2m_core.memory import L2M
from l2m_core.model.parallel import in_turn, side_by_side


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def two_views(model: L2M) -> L2M:
    """The released model, asked under two codings of the classes; all questions but the first read a part of the rows."""
    inference = replace(model.release.inference, views=2, against_rest=0.75)
    return L2M(replace(model.release, inference=inference))


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
def test_what_the_caller_made_is_let_go_though_the_helper_is_busy() -> None:
    """What waits in the helper's queue held the tensors of all layers, more than twice what is kept of a cohort."""
    busy, go_on = threading.Event(), threading.Event()

    class Tensors:
        def made(self) -> None: ...

    def hold() -> None:
        busy.set()
        go_on.wait(20)

    other = threading.Thread(target=side_by_side, args=([busy.wait, hold],))
    other.start()
    assert busy.wait(20)
    try:
        worked_on = [Tensors(), Tensors(), Tensors()]
        alive = [weakref.ref(each) for each in worked_on]
        side_by_side([each.made for each in worked_on])
        del worked_on
        assert [each() for each in alive] == [None, None, None]
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
def test_answers_are_the_same_either_way(two_views: L2M) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(two_views.release.inference.view_rows + 10, 2)).astype(np.float32)
    memory = two_views.condition(Cohort.from_arrays(x, (x[:, 0] > 0).astype(np.int64)))
    assert len(memory.memories) == 2, "so long that the second view reads fewer rows"
    one, other = memory.query(x[:3], in_turn), memory.query(x[:3], side_by_side)
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a.prediction, b.prediction) and torch.equal(a.gain, b.gain)


@pytest.mark.usefixtures("one_thread")
def test_what_is_read_of_a_cohort_is_the_same_either_way(two_views: L2M) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(two_views.release.inference.view_rows + 10, 2)).astype(np.float32)
    cohort = Cohort.from_arrays(x, (x[:, 0] > 0).astype(np.int64))
    told: list[float] = []
    one, other = two_views.read(cohort, in_turn), two_views.read(cohort, side_by_side, told.append)
    for a, b in zip(one.memories, other.memories, strict=True):
        assert all(map(torch.equal, (*a.keys, *a.values), (*b.keys, *b.values)))
    assert told == sorted(told) and 0 < told[0] < told[-1] == 1


@pytest.mark.usefixtures("one_thread")
def test_chunks_of_one_long_cohort_are_read_side_by_side_to_the_same_numbers(
    model: L2M, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "CONTEXT_CHUNK", 64)
    draw = np.random.default_rng(0)
    x = draw.normal(size=(150, 3)).astype(np.float32)
    cohort = Cohort.from_arrays(x, (x[:, 0] > 0).astype(np.int64))
    most = []

    def count(calls):
        most.append(len(calls))
        return side_by_side(calls)

    one, other = model.read(cohort, in_turn), model.read(cohort, count)
    assert max(most) == 3, "150 rows in chunks of 64"
    for a, b in zip(one.memories, other.memories, strict=True):
        assert all(map(torch.equal, (*a.keys, *a.values), (*b.keys, *b.values)))


@pytest.mark.usefixtures("one_thread")
def test_what_is_told_of_the_reading_counts_every_batch_by_its_work(two_views: L2M) -> None:
    """Of many classes most tasks are in the batch with fewer rows."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(two_views.release.inference.view_rows + 10, 2)).astype(np.float32)
    cohort = Cohort.from_arrays(x, np.digitize(x[:, 0], [-1, -0.5, 0, 0.5, 1]))
    told: list[float] = []
    memory = two_views.read(cohort, in_turn, told.append)
    assert [len(part.keys[0]) for part in memory.memories] == [1, 7], "the first batch alone has all rows"
    after_the_first = told[len(told) // 2 - 1]
    assert 0.1 < after_the_first < 0.2 and told[-1] == pytest.approx(1)

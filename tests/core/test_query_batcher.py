"""Single questions: asked together when they come at once, not asked again when they were lately."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from l2m_core.answering.batching import QueryBatcher
from l2m_core.lazy import lazy
from l2m_core.model.interface import Output


def rows(*values: float) -> np.ndarray:
    return np.array([[value, np.nan] for value in values], np.float32)


class Asked:
    """Doubles the first column, and remembers how many rows came in each call."""

    def __init__(self, hold: threading.Event | None = None) -> None:
        self.calls: list[int] = []
        self.hold = hold

    def __call__(self, x: np.ndarray) -> list[Output]:
        self.calls.append(len(x))
        if self.hold is not None:
            assert self.hold.wait(60)
        return [Output(*(torch.tensor([[[2 * row[0]]]]) for _ in range(3))) for row in x]


def numbers(answers: list[Output]) -> list[float]:
    return [float(answer.gain) for answer in answers]


def test_each_row_gets_its_own_answer_and_is_asked_once() -> None:
    kept, asked = QueryBatcher(), Asked()
    assert numbers(kept.answers(rows(1, 2, 1), asked)) == [2, 4, 2]
    assert numbers(kept.answers(rows(3, 2), asked)) == [6, 4]
    assert asked.calls == [2, 1]


def test_what_comes_while_somebody_asks_is_asked_together_next() -> None:
    hold = threading.Event()
    kept, asked = QueryBatcher(), Asked(hold)
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(kept.answers, rows(1), asked)
        while not asked.calls:
            time.sleep(0.001)
        later = [pool.submit(kept.answers, rows(1, value), asked) for value in (2, 3, 4, 5)]
        while kept.waiting < 4:
            time.sleep(0.001)
        hold.set()
        assert numbers(first.result()) == [2]
        assert [numbers(one.result()) for one in later] == [[2, 4], [2, 6], [2, 8], [2, 10]]
    assert asked.calls == [1, 4]


def test_a_failure_is_told_to_all_who_waited_and_is_not_kept() -> None:
    kept = QueryBatcher()

    def fail(x: np.ndarray) -> list[Output]:
        raise MemoryError("no room")

    for _ in range(2):
        with pytest.raises(MemoryError, match="no room"):
            kept.answers(rows(1), fail)
    assert numbers(kept.answers(rows(1), Asked())) == [2]


def test_the_least_recent_answers_are_let_go() -> None:
    kept, asked = QueryBatcher(most_kept=3), Asked()
    for value in (1, 2, 3, 1, 4):
        kept.answers(rows(value), asked)
    assert len(kept) == 3
    kept.answers(rows(1, 3, 4), asked)
    assert asked.calls == [1, 1, 1, 1]
    kept.answers(rows(2), asked)
    assert asked.calls == [1, 1, 1, 1, 1]


def test_many_threads_get_the_answers_that_one_gets(memory) -> None:
    generator = np.random.default_rng(0)
    x = memory.cohort.x[:60].astype(np.float32)
    x[generator.random(x.shape) < 0.5] = np.nan
    alone = memory.query(x)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda row: memory.answer(row[None]), x))
    gains = torch.cat([part.gain for part in alone], dim=1)[0].numpy()
    np.testing.assert_allclose(np.concatenate([answer.gain for answer in answers]), gains, atol=1e-5)
    several = memory.answer(x[:10])
    np.testing.assert_array_equal(several.gain, np.concatenate([answer.gain for answer in answers[:10]]))


class Slow:
    """Two values; the first waits until somebody has asked another instance."""

    def __init__(self, met: threading.Barrier) -> None:
        self.met = met

    @lazy
    def value(self) -> int:
        """A number."""
        self.met.wait(60)
        return id(self)


def test_what_is_computed_once_does_not_hold_up_other_instances() -> None:
    met = threading.Barrier(2)
    one, other = Slow(met), Slow(met)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(lambda who: who.value, who) for who in (one, other)]
        assert [job.result(60) for job in asked] == [id(one), id(other)]
    assert one.value == id(one) and Slow.value.__doc__ == "A number."  # a second computation would wait for ever


def test_an_answer_too_few_is_an_error_and_nobody_waits_for_ever() -> None:
    recent = QueryBatcher()
    with pytest.raises(ValueError, match="shorter"):
        recent.answers(np.zeros((1, 3), np.float32), lambda x: [])
    assert recent.answers(np.zeros((1, 3), np.float32), lambda x: ["one"] * len(x)) == ["one"]  # type: ignore[list-item]


def test_what_was_asked_lately_is_known() -> None:
    recent, asked = QueryBatcher(), Asked()
    recent.answers(rows(1, 2), asked)
    assert recent.has_answers(rows(2)) and recent.has_answers(rows(2, 1))
    assert not recent.has_answers(rows(2, 3)) and asked.calls == [2]

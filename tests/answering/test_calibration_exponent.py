"""How sure predictions should be, found from the cohort's own rows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import l2m_core as l2m
from l2m_core.answering.batching import QueryBatcher
from l2m_core.answering.calibration import (
    FEWEST_ROWS,
    FOLDS,
    MASKS,
    MOST_ROWS,
    best_exponent,
    calibration_exponent,
    cross_fitted,
)
from l2m_core.cohort import Cohort
from l2m_core.memory import L2M


def drawn(sure: float, rows: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Log probabilities of three classes, each row MASKS times, and classes that follow their power `sure`."""
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(rows, 3))
    p = np.exp(sure * logits)
    p /= p.sum(1, keepdims=True)
    y = (generator.random((rows, 1)) > p.cumsum(1)).sum(1)
    return np.tile(logits - np.log(np.exp(logits).sum(1, keepdims=True)), (MASKS, 1)), np.tile(y, MASKS)


@pytest.mark.parametrize("sure", [0.5, 1.0, 2.0])
def test_the_exponent_that_made_the_outcomes_is_found(sure: float) -> None:
    assert best_exponent(*drawn(sure), spread=10.0) == pytest.approx(sure, rel=0.1)


def test_few_rows_move_it_less_than_many_and_a_narrow_spread_holds_it() -> None:
    log_p, y = drawn(2.0)
    few = np.concatenate([np.arange(20) + 20_000 * mask for mask in range(MASKS)])
    assert 1.0 < best_exponent(log_p[few], y[few], 0.3) < best_exponent(log_p, y, 0.3)
    assert best_exponent(log_p[few], y[few], 0.01) == pytest.approx(1.0, abs=0.03)


def cohort_of(rows: int) -> Cohort:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(rows, 3)).astype(np.float32)
    x[generator.random(x.shape) < 0.1] = np.nan
    return Cohort.from_arrays(x, np.arange(rows) % 3)


def test_every_row_is_asked_about_by_a_reading_that_lacks_it() -> None:
    cohort = cohort_of(90)
    asked: list[np.ndarray] = []

    def read(part: Cohort):
        def answer(x: np.ndarray) -> np.ndarray:
            known = {row.tobytes() for row in part.x}
            assert not any(row.tobytes() in known for row in x[: len(x) // MASKS])
            assert np.bincount(part.y).min() >= len(part) // 3 - 2  # each fold has its share of every class
            asked.append(x)
            return np.full((len(x), 3), 1 / 3)

        return answer

    assert calibration_exponent(cohort, read, 0.3) == pytest.approx(1.0, abs=0.03)
    assert len(asked) == FOLDS and sum(map(len, asked)) == MASKS * 90
    assert all(np.isnan(x).mean() > 0.2 for x in asked)
    log_p, y = cross_fitted(cohort.rows(slice(0, 60)), read)
    assert log_p.shape == (60 * MASKS, 3) and np.bincount(y).tolist() == [60, 60, 60]


def calibrated(spread: float) -> L2M:
    release = l2m.load().release
    return L2M(dataclasses.replace(release, inference=dataclasses.replace(release.inference, exponent_spread=spread)))


def test_a_cohort_of_noise_makes_the_model_less_sure_and_resamples_are_as_sure_as_the_cohort() -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(size=(80, 6)).astype(np.float32)
    cohort = Cohort.from_arrays(x, generator.integers(0, 4, 80))
    plain, own = (calibrated(spread).condition(cohort) for spread in (0.0, 1.0))
    assert plain.exponent == 1.0 and own.exponent < 1.0
    p, moved = plain.predict(x[:9]), own.predict(x[:9])
    powered = p**own.exponent / (p**own.exponent).sum(1, keepdims=True)
    assert np.allclose(moved, powered, atol=1e-6)
    assert {memory.exponent for memory in own.resampled(2)} == {own.exponent}
    # The head says what it said; what it is brought in line with are the calibrated answers.
    as_taught = [dataclasses.replace(memory, alignment=None, batcher=QueryBatcher()) for memory in (own, plain)]
    heads = [memory.answer(x[:9]).gain for memory in as_taught]
    assert np.allclose(*heads)


def test_two_classes_are_left_as_they_are() -> None:
    x = np.random.default_rng(4).normal(size=(60, 3)).astype(np.float32)
    assert calibrated(1.0).condition(Cohort.from_arrays(x, x[:, 0] > 0)).exponent == 1.0


@pytest.mark.parametrize("rows", [FEWEST_ROWS - 1, MOST_ROWS + 1])
def test_a_cohort_that_is_too_short_or_long_enough_is_not_asked(rows: int) -> None:
    def read(part: Cohort):
        raise AssertionError("nothing is asked")

    assert calibration_exponent(cohort_of(rows), read, 0.3) == 1.0

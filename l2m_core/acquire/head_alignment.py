"""Brings the gain head in line with the model's own answers, on the cohort that was read.

The head screens all tests in one query, but was taught on tasks in general: on one cohort it overrates some columns and
underrates others, the same ones in most states. So when a cohort is read, the gains of some tests are also computed from the
model's answers (information.py), in states of the cohort's own rows, and what the head says is corrected:

    log gain  ←  log head + shift + slope · (log head − its mean) + offset of the column
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from l2m_core.acquire.information import outlooks
from l2m_core.answering.batching import QueryBatcher
from l2m_core.answering.engine import ConditionedModel

TESTS = 10  # of a state, at most
RESULTS = 8  # of a test, at most
FEWEST_STATES = 4
QUERY_CELLS = 12_000_000  # context cells × query rows: bounds the time that long and wide cohorts take
LEAST = 1e-4  # nats, added to gains before their logarithm: what is smaller counts as nothing
# Ridge: by so many observations each coefficient is held towards 0.
SHIFT, SLOPE, COLUMN = 1.0, 4.0, 1.0


@dataclass(frozen=True, eq=False)
class HeadAlignment:
    """How the gain head's numbers are corrected on one cohort."""

    middle: float
    """Mean of log head, over what it was fitted to."""
    shift: float
    slope: float
    offsets: np.ndarray
    """(d,)"""

    def applied(self, gain: np.ndarray) -> np.ndarray:
        """(…, d) gains in nats of the head → in line with the model's answers; never negative."""
        log = log_gain(gain)
        aligned = np.exp(log + self.shift + self.slope * (log - self.middle) + self.offsets) - LEAST
        return np.maximum(aligned, 0.0).astype(gain.dtype)


def log_gain(gain: np.ndarray) -> np.ndarray:
    """On the scale on which gains are compared."""
    return np.log(np.maximum(gain, 0.0) + LEAST)


def align_head(memory: ConditionedModel, x: np.ndarray, states: int) -> HeadAlignment | None:
    """Fitted to random states of rows x (n, d) of the cohort; None where nothing could be computed."""
    # Caches of its own: what is asked here, nobody asks again.
    apart = replace(memory, batcher=QueryBatcher(), prediction_batcher=QueryBatcher(), foreseen={}, alignment=None)
    compared = list(_compared(apart, x, min(states, max(FEWEST_STATES, _affordable(memory)))))
    if not compared:
        return None
    column, head, exact = (np.concatenate(part) for part in zip(*compared, strict=True))
    log = log_gain(head)
    middle, d = float(log.mean()), x.shape[1]
    # (tests, 2 + d): a constant, the head's own size, and which column it is.
    design = np.concatenate([np.ones((len(log), 1)), (log - middle)[:, None], np.eye(d)[column]], axis=1)
    ridge = np.diag([SHIFT, SLOPE, *[COLUMN] * d])
    shift, slope, *offsets = np.linalg.solve(design.T @ design + ridge, design.T @ (log_gain(exact) - log))
    return HeadAlignment(middle, float(shift), float(slope), np.array(offsets))


def _compared(memory: ConditionedModel, x: np.ndarray, states: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Of each state: columns of open tests, what the head says of them, and what the model's own answers say."""
    generator = np.random.default_rng(0)
    acquirable = memory.cohort.acquirable
    for _ in range(states):
        row = x[generator.integers(len(x))]
        # A share of what the row has, drawn anew for each state, so that little and much is known.
        is_hidden = acquirable & (generator.random(len(row)) >= generator.random())
        state = np.where(is_hidden, np.nan, row).astype(np.float32)
        columns = generator.permutation(np.flatnonzero(np.isnan(state) & acquirable))[:TESTS]
        if not len(columns):
            continue
        answer = memory.answer(state[None])
        assert answer.values is not None
        found = outlooks(memory, state, answer.values[0], [[column] for column in columns])
        told = np.array([outlook is not None for outlook in found])  # not of tests that are too rarely recorded
        exact = np.array([outlook.gain for outlook in found if outlook is not None])
        if told.any():
            yield columns[told], answer.gain[0, columns[told]], exact


def _affordable(memory: ConditionedModel) -> int:
    """How many states fit into QUERY_CELLS."""
    cells = sum(part.context_rows * len(part.keys[0]) for part in memory.memories) * (1 + len(memory.cohort.names))
    return QUERY_CELLS // (cells * TESTS * RESULTS)

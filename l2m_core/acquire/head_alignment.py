"""Brings the gain head in line with the model's own answers, on the cohort that was read.

The head screens all tests in one query, but was taught on tasks in general: on one cohort it overrates some columns and
underrates others, the same ones in most states. So when a cohort is read, the gains of some tests are also computed from the
model's answers (information.py), in states of the cohort's own rows, and what the head says is corrected:

    log gain  ←  log head + shift + slope · (log head − its mean) + offset of the column + direction · hidden layer

The hidden layer, of which the head makes its number, knows what is known of the patient, so tests are corrected in some states
and not in others; a release says whether it is used (`aligned_by`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from l2m_core.acquire.information import outlooks
from l2m_core.answering.batching import QueryBatcher
from l2m_core.answering.engine import ConditionedModel
from l2m_core.answering.settings import HIDDEN_LAYER
from l2m_core.model.interface import Progress, ignore_progress

TESTS = 10  # of a state, at most
RESULTS = 8  # of a test, at most
FEWEST_STATES = 4
QUERY_CELLS = 12_000_000  # context cells × query rows: bounds the time that long and wide cohorts take
LEAST = 1e-4  # nats, added to gains before their logarithm: what is smaller counts as nothing
# Ridge: by so many observations each coefficient is held towards 0.
SHIFT, SLOPE, COLUMN, DIRECTION = 1.0, 4.0, 1.0, 5.0


@dataclass(frozen=True, eq=False)
class HeadAlignment:
    """How the gain head's numbers are corrected on one cohort."""

    middle: float
    """Mean of log head, over what it was fitted to."""
    shift: float
    slope: float
    offsets: Tensor
    """(d,)"""
    direction: Tensor | None
    """(width,) in the head's hidden layer; None: it is left out."""
    furthest: tuple[float, float]
    """The smallest and the largest correction that was seen. None goes beyond them."""

    def applied(self, gain: Tensor, features: Tensor | None) -> Tensor:
        """(…, d) gains in nats of the head → in line with the model's answers; never negative. features: (…, d, width)."""
        log = (gain.double().clamp_min(0.0) + LEAST).log()
        correction = self.shift + self.slope * (log - self.middle) + self.offsets.to(log.device)
        if self.direction is not None:
            assert features is not None
            correction = correction + features.double() @ self.direction.to(log.device)
            correction = correction.clamp(*self.furthest)
        return ((log + correction).exp() - LEAST).clamp_min(0.0).to(gain.dtype)


def log_gain(gain: np.ndarray) -> np.ndarray:
    """On the scale on which gains are compared."""
    return np.log(np.maximum(gain, 0.0) + LEAST)


@dataclass(frozen=True, eq=False)
class _Compared:
    """Tests of one state, by the head and by the model's own answers."""

    state: np.ndarray
    """(d,)"""
    columns: np.ndarray
    """(m,) of the tests"""
    head: np.ndarray
    """(m,) nats"""
    exact: np.ndarray
    """(m,) nats"""


def align_head(
    memory: ConditionedModel, x: np.ndarray, states: int, progress: Progress = ignore_progress
) -> HeadAlignment | None:
    """Fitted to random states of rows x (n, d) of the cohort; None where nothing could be computed.

    progress: is called with the share of the states that is done.
    """
    # Caches of its own: what is asked here, nobody asks again.
    apart = replace(memory, batcher=QueryBatcher(), prediction_batcher=QueryBatcher(), foreseen={}, alignment=None)
    compared = list(_compared(apart, x, min(states, max(FEWEST_STATES, _affordable(memory))), progress))
    if not compared:
        return None
    hidden = None
    if memory.release.inference.aligned_by == HIDDEN_LAYER:
        layer = apart.gain_features(np.stack([state.state for state in compared]))  # (states, d, width)
        hidden = np.concatenate([one[state.columns] for one, state in zip(layer, compared, strict=True)])
    return _fitted(compared, hidden, x.shape[1])


def _fitted(compared: list[_Compared], hidden: np.ndarray | None, d: int) -> HeadAlignment:
    """By ridge regression over all tests of all states. hidden: (tests, width)."""
    column = np.concatenate([state.columns for state in compared])
    log = log_gain(np.concatenate([state.head for state in compared]))
    off = log_gain(np.concatenate([state.exact for state in compared])) - log
    middle = float(log.mean())
    # (tests, 2 + d): a constant, the head's own size, and which column it is; then the hidden layer.
    design = np.concatenate([np.ones((len(log), 1)), (log - middle)[:, None], np.eye(d)[column]], axis=1)
    held = [SHIFT, SLOPE, *[COLUMN] * d]
    if hidden is not None:
        centre, spread = hidden.mean(0), hidden.std() + LEAST
        design = np.concatenate([design, (hidden - centre) / spread], axis=1)
        held += [DIRECTION] * hidden.shape[1]
    shift, slope, *found = np.linalg.solve(design.T @ design + np.diag(held), design.T @ off)
    direction = None
    if hidden is not None:
        # What was fitted to centred and scaled features is a shift, and a direction in the features as they are.
        direction = np.array(found[d:]) / spread
        shift -= centre @ direction
    return HeadAlignment(
        middle,
        float(shift),
        float(slope),
        torch.tensor(found[:d]),
        None if direction is None else torch.from_numpy(direction),
        (float(off.min()), float(off.max())),
    )


def _compared(memory: ConditionedModel, x: np.ndarray, states: int, progress: Progress) -> Iterator[_Compared]:
    generator = np.random.default_rng(0)
    acquirable = memory.cohort.acquirable
    for number in range(states):
        progress(number / states)
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
            yield _Compared(state, columns[told], answer.gain[0, columns[told]], exact)


def _affordable(memory: ConditionedModel) -> int:
    """How many states fit into QUERY_CELLS."""
    return QUERY_CELLS // (memory.cells * TESTS * RESULTS)

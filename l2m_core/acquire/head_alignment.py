"""Brings the gain head in line with the model's own answers, on the cohort that was read.

The head screens all tests in one query, but was taught on tasks in general: on one cohort it overrates some columns and
underrates others, often the same ones in states that resemble each other. So when a cohort is read, the gains of some tests
are also computed from the model's answers (information.py), in states of the cohort's own rows, and what the head says is
corrected:

    log gain  ←  log head + correction(log head, column, hidden layer)

The correction is the mean of a Gaussian process that was fitted to the tests compared. The hidden layer, of which the head
makes its number, knows what is known of the patient, so tests are corrected in some states and not in others. A release says
of what the covariance is made (`aligned_by`); with linear parts alone the process is ridge regression.
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
from l2m_core.answering.settings import COLUMN, FEW_STATES, HIDDEN_LAYER, LIKE_TESTS, NEAR_TESTS
from l2m_core.model.interface import Progress, ignore_progress

RESULTS = 8  # of a test, at most
FEWEST_STATES = 4
LEAST = 1e-4  # nats, added to gains before their logarithm: what is smaller counts as nothing


@dataclass(frozen=True)
class AlignmentSettings:
    """How a head is compared and corrected. Variances are of logarithms of gains."""

    tests: int
    """Compared in a state, at most."""
    query_cells: int
    """Context cells × query rows: bounds the time that long and wide cohorts take."""
    first: int = 0
    """Of the tests of a state, so many that the head puts first; the others are drawn."""
    early: int = 0
    """In every second state at most so many tests are done, as where tests are mostly chosen; 0: states are not made so."""
    shift: float = 1.0
    """Variance of what all corrections share."""
    slope: float = 0.25
    """Variance of the slope in the head's own size."""
    column: float = 1.0
    """Variance of each column's offset."""
    hidden: float = 0.0
    """Variance of each coefficient of the hidden layer, centred and scaled."""
    alike: float = 0.0
    """Variance that tests share whose hidden layers are alike; as much again, where they are of one column too."""
    length: float = 0.3
    """Square of the length at which hidden layers count as alike, in units of the median square distance."""
    noise: float = 1.0
    closer: float = 0.0
    """Power of its gain by which a test's variance of noise shrinks: tests that tell much are the ones to have right."""
    share_of_estimates: float = 0.0
    """Of a gain that is estimated from a few results, the share that the head's number has in it; see policies.py."""

    @property
    def reads_hidden_layer(self) -> bool:
        return self.hidden > 0 or self.alike > 0


# Few tests of many states: states differ more than the tests of one.
_LIKE_TESTS = AlignmentSettings(
    tests=4,
    first=1,
    early=8,
    query_cells=24_000_000,
    hidden=0.2,
    alike=1.0,
    noise=0.3,
    closer=0.3,
    share_of_estimates=0.5,
)
# What a head that was taught for longer still gets wrong, only tests that lie nearer to each other share.
_NEAR_TESTS = replace(_LIKE_TESTS, hidden=0.02, alike=2.0, length=0.15)
# What earlier releases say stays as it was, so that what was made with them replays.
ALIGNMENTS = {
    COLUMN: AlignmentSettings(tests=10, query_cells=12_000_000),
    HIDDEN_LAYER: AlignmentSettings(tests=10, query_cells=12_000_000, hidden=0.2),
    LIKE_TESTS: _LIKE_TESTS,
    NEAR_TESTS: _NEAR_TESTS,
    # More tests of fewer states say as much for less: each state is a query, which reads the whole memory. Estimates from
    # three results err less than the head.
    FEW_STATES: replace(_NEAR_TESTS, tests=6, query_cells=20_000_000, share_of_estimates=0.25),
}
SMALLEST, LARGEST = 0.1, 30.0  # in median gains: beyond these, the size of a gain changes its noise no further


@dataclass(frozen=True, eq=False)
class Compared:
    """Tests by the head, as the covariance reads them."""

    column: Tensor
    """(m,)"""
    log: Tensor
    """(m,) log head, less its mean over the tests that corrections were fitted to."""
    hidden: Tensor | None
    """(m, width), centred and scaled; None: it is not read."""

    def to(self, device: torch.device) -> Compared:
        hidden = None if self.hidden is None else self.hidden.to(device)
        return Compared(self.column.to(device), self.log.to(device), hidden)


@dataclass(frozen=True, eq=False)
class HeadAlignment:
    """How the gain head's numbers are corrected on one cohort."""

    settings: AlignmentSettings
    fitted: Compared
    weights: Tensor
    """(m,) of the tests that it was fitted to: a correction is the sum of covariances with them, so weighted."""
    middle: float
    """Mean of log head, over what it was fitted to."""
    centre: Tensor | None
    """(width,) of their hidden layers; None: they are not read."""
    spread: float
    """By which hidden layers are divided, once centred."""
    square_distance: float
    """Median between two of their hidden layers, so scaled."""
    furthest: tuple[float, float]
    """The smallest and the largest correction that was seen. With the hidden layer, none goes beyond them."""

    @property
    def share_of_estimates(self) -> float:
        return self.settings.share_of_estimates

    def applied(self, gain: Tensor, features: Tensor | None) -> Tensor:
        """(…, d) gains in nats of the head → in line with the model's answers; never negative. features: (…, d, width)."""
        log = (gain.double().clamp_min(0.0) + LEAST).log()
        column = torch.arange(gain.shape[-1], device=gain.device).expand(gain.shape)
        hidden = None
        if self.centre is not None:
            assert features is not None
            hidden = ((features.double() - self.centre.to(gain.device)) / self.spread).flatten(0, -2)
        asked = Compared(column.flatten(), (log - self.middle).flatten(), hidden)
        covariance = covariances(self.settings, asked, self.fitted.to(gain.device), self.square_distance)  # (… · d, m)
        correction = (covariance @ self.weights.to(gain.device)).view(gain.shape)
        if hidden is not None:
            correction = correction.clamp(*self.furthest)
        return ((log + correction).exp() - LEAST).clamp_min(0.0).to(gain.dtype)


def covariances(settings: AlignmentSettings, one: Compared, other: Compared, square_distance: float) -> Tensor:
    """(m, n) of the corrections of m and n tests."""
    same = one.column[:, None] == other.column
    found = settings.shift + settings.slope * torch.outer(one.log, other.log) + settings.column * same
    if one.hidden is not None:
        assert other.hidden is not None
        products = one.hidden @ other.hidden.T
        found = found + settings.hidden * products
        if settings.alike:
            squares = one.hidden.square().sum(1)[:, None] + other.hidden.square().sum(1) - 2 * products
            found = found + settings.alike * (1.0 + same) * (-squares / (2 * settings.length * square_distance)).exp()
    return found


def log_gain(gain: np.ndarray) -> np.ndarray:
    """On the scale on which gains are compared."""
    return np.log(np.maximum(gain, 0.0) + LEAST)


def between(one: np.ndarray, other: np.ndarray, share: float) -> np.ndarray:
    """Gains between two, on the scale of log_gain; share: of the other."""
    return np.maximum(np.exp((1 - share) * log_gain(one) + share * log_gain(other)) - LEAST, 0.0)


@dataclass(frozen=True, eq=False)
class ComparedState:
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
    settings = ALIGNMENTS[memory.release.inference.aligned_by]
    # Caches of its own: what is asked here, nobody asks again.
    apart = replace(memory, batcher=QueryBatcher(), prediction_batcher=QueryBatcher(), foreseen={}, alignment=None)
    affordable = settings.query_cells // (memory.cells * settings.tests * RESULTS)
    compared = list(_compared(apart, x, min(states, max(FEWEST_STATES, affordable)), settings, progress))
    if not compared:
        return None
    column = np.concatenate([state.columns for state in compared])
    head = np.concatenate([state.head for state in compared])
    exact = np.concatenate([state.exact for state in compared])
    hidden = None
    if settings.reads_hidden_layer:
        layer = apart.gain_features(np.stack([state.state for state in compared]))  # (states, d, width)
        hidden = np.concatenate([one[state.columns] for one, state in zip(layer, compared, strict=True)])
    return fit_alignment(settings, column, head, exact, hidden)


def fit_alignment(
    settings: AlignmentSettings, column: np.ndarray, head: np.ndarray, exact: np.ndarray, hidden: np.ndarray | None
) -> HeadAlignment:
    """To tests of all states: their columns (m,), gains by the head and by the answers (m,), hidden layers (m, width)."""
    log = log_gain(head)
    off = log_gain(exact) - log
    middle = float(log.mean())
    centre, spread, square_distance, scaled = None, 1.0, 1.0, None
    if hidden is not None:
        centre, spread = torch.from_numpy(hidden.mean(0)).double(), float(hidden.std()) + LEAST
        scaled = (torch.from_numpy(hidden).double() - centre) / spread
        square_distance = float(torch.pdist(scaled).square().median()) + LEAST if len(scaled) > 1 else 1.0
    fitted = Compared(torch.from_numpy(column), torch.from_numpy(log - middle).double(), scaled)
    # The mean of the process at a test is its covariances with the tests fitted to, times these weights.
    covariance = covariances(settings, fitted, fitted, square_distance) + torch.diag(
        torch.from_numpy(_noise(settings, exact))
    )
    weights = torch.linalg.solve(covariance, torch.from_numpy(off).double())
    furthest = (float(off.min()), float(off.max()))
    return HeadAlignment(settings, fitted, weights, middle, centre, spread, square_distance, furthest)


def _noise(settings: AlignmentSettings, exact: np.ndarray) -> np.ndarray:
    """(m,) variances of what no covariance explains, for gains (m,)."""
    size = (exact + LEAST) / np.median(exact + LEAST)
    return settings.noise * size.clip(SMALLEST, LARGEST) ** -settings.closer


def _compared(
    memory: ConditionedModel, x: np.ndarray, states: int, settings: AlignmentSettings, progress: Progress
) -> Iterator[ComparedState]:
    drawn = _draw_states(memory.cohort.acquirable, x, states, settings)
    if not drawn:
        return
    # Of all states at once: each query reads the whole memory, whether it is of one state or of many.
    answer = memory.answer(np.stack([state for state, _ in drawn]))
    assert answer.values is not None
    for number, ((state, columns), head, values) in enumerate(zip(drawn, answer.gain, answer.values, strict=True)):
        progress(number / len(drawn))
        first = sorted(columns, key=lambda column: -head[column])[: settings.first]
        columns = np.array([*first, *(column for column in columns if column not in first)])[: settings.tests]
        found = outlooks(memory, state, values, [[column] for column in columns])
        told = np.array([outlook is not None for outlook in found])  # not of tests that are too rarely recorded
        exact = np.array([outlook.gain for outlook in found if outlook is not None])
        if told.any():
            yield ComparedState(state, columns[told], head[columns[told]], exact)


def _draw_states(
    acquirable: np.ndarray, x: np.ndarray, states: int, settings: AlignmentSettings
) -> list[tuple[np.ndarray, np.ndarray]]:
    """States (d,) of rows x (n, d), each with its open tests in random order; those with an open test, of so many drawn."""
    generator = np.random.default_rng(0)
    drawn = []
    for number in range(states):
        row = x[generator.integers(len(x))]
        # A share of what the row has, drawn anew for each state, so that little and much is known.
        is_hidden = acquirable & (generator.random(len(row)) >= generator.random())
        if settings.early and number % 2:
            is_hidden = _early(generator, acquirable, row, settings.early)
        state = np.where(is_hidden, np.nan, row).astype(np.float32)
        columns = generator.permutation(np.flatnonzero(np.isnan(state) & acquirable))
        if len(columns):
            drawn.append((state, columns))
    return drawn


def _early(generator: np.random.Generator, acquirable: np.ndarray, row: np.ndarray, most: int) -> np.ndarray:
    """(d,) what is hidden of a row of which at most so many tests are done."""
    done = generator.permutation(np.flatnonzero(acquirable & ~np.isnan(row)))[: generator.integers(most + 1)]
    hidden = acquirable.copy()
    hidden[done] = False
    return hidden

"""A released model reads a cohort, and answers about partly known patients: tensors in, arrays out.

`encode_cohort` runs once per cohort and keeps keys and values (`Memory`); `ConditionedModel.answer` then costs a query
of those, not a reading of the cohort.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch

from l2m_core.answering.batching import MOST_AT_ONCE, QueryBatcher
from l2m_core.answering.class_codings import ClassCodings, joined, prevalence_shift
from l2m_core.answering.context_rows import even_parts, shorten
from l2m_core.answering.devices import Device
from l2m_core.answering.fallback import OnDevice
from l2m_core.answering.other_levels import OtherLevels
from l2m_core.answering.parts import averaged
from l2m_core.answering.predictive import Predictive, reach_of
from l2m_core.answering.release import Release
from l2m_core.answering.row_order import content_order
from l2m_core.answering.settings import AS_CODED
from l2m_core.cohort import Cohort
from l2m_core.lazy import lazy
from l2m_core.model.columns import Columns
from l2m_core.model.density import predictive
from l2m_core.model.interface import Context, Memory, Output, Progress, ignore_progress
from l2m_core.model.parallel import RunAll, in_turn, side_by_side
from l2m_core.model.results import Levels, SharedValues, levels_of

CONTEXT_CHUNK = 1024  # rows worked on at a time when conditioning
OWN_WORK = 2000  # a row's own work, counted in the rows that it could read in that time
QUERY_CELLS = 2_000_000  # context cells × query rows read at a time; bounds peak memory
QUERY_ROWS = 1024  # query rows at a time, at most


@dataclass(frozen=True)
class Answer:
    """prediction: (n, K) or Predictive; gain: (n, d) nats; policy: (n, d) logits; nothing is blocked.

    values: (n, d, V) probabilities over equal bins of each column's ranks (see model/results.py), what a result not yet known
    will be; None of a model that foresees none.
    """

    prediction: np.ndarray | Predictive
    gain: np.ndarray
    policy: np.ndarray
    values: np.ndarray | None = None


class Blends(Protocol):
    """Mixes the model's predictions with others'; see l2m_core/council."""

    def blend(self, prediction: np.ndarray | Predictive, x: np.ndarray) -> np.ndarray | Predictive:
        """prediction: the model's for x, (n, d) with NaN where unknown."""


class Aligns(Protocol):
    """Brings the gain head in line with the model's own answers on this cohort; see l2m_core/acquire/head_alignment.py."""

    @property
    def share_of_estimates(self) -> float:
        """Of a gain that is estimated from a few results, the share that the head's number has in it."""

    def applied(self, gain: torch.Tensor, features: torch.Tensor | None) -> torch.Tensor:
        """gain: (…, d) nats; features: (…, d, width) of which the head made them."""


def encode_cohort(
    release: Release, cohort: Cohort, run: RunAll = in_turn, progress: Progress = ignore_progress
) -> tuple[OnDevice[tuple[Memory, ...]], ClassCodings | None]:
    """The memories of the cohort, and for classes the codings under which it was read.

    run: how batches, and chunks of rows in them, are run; progress: is called with the share of the reading that is done.
    """
    codings: ClassCodings | None = None
    if cohort.kind != "continuous":
        views, rest_share = release.views_of(cohort), release.inference.against_rest
        by_frequency = None
        if release.inference.by_frequency:
            by_frequency = torch.from_numpy(cohort.y[content_order(cohort, with_outcome=False)])
        codings = ClassCodings.of(cohort.n_classes, views, rest_share, release.parts_of(cohort), by_frequency)
    return OnDevice(release, partial(_read, cohort=cohort, codings=codings, run=run, progress=progress)), codings


def _read(
    release: Release, cohort: Cohort, codings: ClassCodings | None, run: RunAll, progress: Progress
) -> tuple[Memory, ...]:
    """On the release's device."""
    context = _context_of(release, cohort)
    rows_of_parts = even_parts(context.y[0].cpu(), release.parts_of(cohort))
    parts = [context.rows(rows.to(context.y.device)) for rows in rows_of_parts]
    contexts = tuple(parts) if codings is None else codings.encode(context, parts, release.inference.view_rows)
    condition = release.module.condition
    shares = _Shares(contexts, progress)

    def inferring(calls: Sequence[Callable[[], Any]]) -> list[Any]:
        return run([torch.inference_mode()(call) for call in calls])  # a mode that each thread enters for itself

    def read(batch: Context) -> Memory:
        told = partial(shares.take, batch)
        return condition(batch, chunk=CONTEXT_CHUNK, run=inferring, progress=told)  # type: ignore[operator, no-any-return]

    return tuple(inferring([partial(read, batch) for batch in contexts]))


class _Shares:
    """Adds up how far several batches are that are read at once, each weighted by the work it takes."""

    def __init__(self, batches: Sequence[Context], progress: Progress) -> None:
        work = {id(batch): _work_of(batch) for batch in batches}
        self._weights = {key: one / sum(work.values()) for key, one in work.items()}
        self._done = dict.fromkeys(work, 0.0)
        self._lock, self._progress = threading.Lock(), progress

    def take(self, batch: Context, share: float) -> None:
        with self._lock:
            self._done[id(batch)] = share * self._weights[id(batch)]
            self._progress(min(1.0, math.fsum(self._done.values())))


def _work_of(batch: Context) -> float:
    """Of reading a batch of tasks, in any unit: each row reads all others, and has work of its own."""
    tasks, rows = batch.y.shape
    return float(tasks * rows * (rows + OWN_WORK))


def _context_of(release: Release, cohort: Cohort) -> Context:
    """The rows that are read, as one task (B = 1) on the model's device; unrecorded cells are 0, masked out by r."""
    device = next(release.module.parameters()).device
    part = shorten(cohort, release.rows_read(cohort))
    return Context(
        torch.from_numpy(np.nan_to_num(part.x, nan=0.0)).to(device)[None],
        torch.from_numpy(part.r.copy()).to(device)[None],
        torch.from_numpy(part.y.copy()).to(device)[None],
        None if cohort.kind == "continuous" else torch.tensor([cohort.n_classes], device=device),
        torch.from_numpy(cohort.categorical.copy()).to(device)[None],
    )


@dataclass(frozen=True, eq=False)
class ConditionedModel:
    """A released model that has read a cohort, and answers for rows that are encoded already."""

    release: Release
    cohort: Cohort
    kept: OnDevice[tuple[Memory, ...]]
    """A memory for each batch of tasks that the cohort was put as, in the order of `codings`."""
    notes: tuple[str, ...] = ()
    """Where the cohort lies outside the trained range."""
    codings: ClassCodings | None = None
    """The codings of the classes, one for each task of `memories`; None for a continuous outcome."""
    exponent: float = 1.0
    """The calibration exponent of predicted probabilities; see l2m_core/answering/calibration.py."""
    council: Blends | None = None
    """What predictions are blended with; None: they are the model's alone."""
    alignment: Aligns | None = None
    """What the gain head's numbers are corrected by; None: they are as it says."""
    batcher: QueryBatcher = field(default_factory=QueryBatcher, repr=False)
    prediction_batcher: QueryBatcher = field(default_factory=QueryBatcher, repr=False)
    """Of `predictions`, whose answers rank nothing."""
    foreseen: dict[bytes, Any] = field(default_factory=dict, repr=False)
    """The latest results that were foreseen; see l2m_core/acquire/foreseen.py."""

    def forget_answers(self) -> None:
        """Drop the latest answers, and with them what was known of the patients that they were about."""
        self.batcher.forget()
        self.prediction_batcher.forget()
        self.foreseen.clear()

    @property
    def memories(self) -> tuple[Memory, ...]:
        """What the model keeps of the cohort, where it is now."""
        return self.kept.made

    @property
    def device(self) -> Device:
        """Where answers are computed now."""
        return self.kept.device

    @property
    def cells(self) -> int:
        """(tasks × context rows × columns) that a query attends to, the outcome's column included."""
        return self._cells(0)

    @property
    def work(self) -> int:
        """How long a query row takes to answer, in cells: those that it attends to, and what its own take beside."""
        return self._cells(OWN_WORK)

    def _cells(self, more_rows: int) -> int:
        rows = sum((part.context_rows + more_rows) * len(part.keys[0]) for part in self.memories)
        return rows * (1 + len(self.cohort.names))

    @property
    def nbytes(self) -> int:
        return sum(memory.nbytes for memory in self.memories)

    @property
    def rows_read(self) -> int:
        """Rows of the cohort that the model read."""
        return self.release.rows_read(self.cohort)

    @property
    def classes(self) -> tuple[str, ...]:
        """Order of the columns of a prediction."""
        return self.cohort.classes

    # -- answering --------------------------------------------------------------------------------------------------

    def answer(self, x: np.ndarray) -> Answer:
        """x: (n, d) with NaN where unknown. Few rows are batched with what other threads ask, and cached."""
        with torch.inference_mode():
            is_small = 0 < len(x) <= MOST_AT_ONCE
            parts = self.batcher.answers(x, self._query_each) if is_small else self.query(x)
            output = joined(parts, dim=1)
            gain, policy = (tensor[0].float().cpu().numpy() for tensor in (output.gain, output.policy))
            values = None if output.values is None else output.values[0].float().softmax(-1).cpu().numpy()
            return Answer(self._prediction(output, x), gain, policy, values)

    def predictions(self, x: np.ndarray) -> np.ndarray | Predictive:
        """What `answer(x).prediction` holds, for less: nothing is ranked. Few rows are batched and cached too."""
        if len(x) > MOST_AT_ONCE:
            # Several small queries instead of a large one, so that what is asked twice is found again.
            parts = [part for some in np.array_split(x, -(-len(x) // MOST_AT_ONCE)) for part in self._predicted(some)]
        else:
            parts = self._predicted(x)
        with torch.inference_mode():
            return self._prediction(joined(parts, dim=1), x)

    def _predicted(self, x: np.ndarray) -> list[Output]:
        with torch.inference_mode():
            return self.prediction_batcher.answers(x, lambda rows: self._query_each(rows, rank=False))

    def is_cached(self, x: np.ndarray) -> bool:
        """Whether the answers for these rows are cached, so that asking costs nothing."""
        return self.batcher.has_answers(x)

    def query(self, x: np.ndarray, run: RunAll = in_turn, rank: bool = True) -> list[Output]:
        """The model's outputs for (n, d) rows, in chunks of rows, so that peak memory stays bounded for any n."""
        # Each of n queries attends to (tasks × context rows × columns) cells, the outcome's column included.
        cells = sum(memory.context_rows * (1 + x.shape[1]) * len(memory.keys[0]) for memory in self.memories)
        size = max(1, min(QUERY_ROWS, QUERY_CELLS // max(1, cells)))
        # As many query rows as the bound allows, so that a memory is read as seldom as possible.
        return [self._query(part, run, rank) for part in np.array_split(x, max(1, -(-len(x) // size)))]

    def _query_each(self, x: np.ndarray, rank: bool = True) -> list[Output]:
        """One output per row, for the cache: copies, so that one row does not keep the tensors of all alive."""
        with torch.inference_mode():
            return [
                _row(part, row) for part in self.query(x, side_by_side, rank) for row in range(part.prediction.shape[1])
            ]

    def gain_features(self, x: np.ndarray) -> np.ndarray:
        """(n, d, width) the gain head's hidden layer, for few (n, d) rows."""

        def ask(release: Release, memories: tuple[Memory, ...]) -> torch.Tensor:
            features = self._asked(release, memories, x, side_by_side).gain_features
            assert features is not None
            return features[0].float().cpu()

        with torch.inference_mode():
            return self.kept.use(ask).numpy()

    def _query(self, x: np.ndarray, run: RunAll = in_turn, rank: bool = True) -> Output:
        """(1, n, …) outputs in the cohort's own class codes, with gains that are in line with the model's answers; on the
        CPU, whatever they were computed on."""

        def ask(release: Release, memories: tuple[Memory, ...]) -> Output:
            output = self._asked(release, memories, x, run, rank)
            gain = output.gain
            if rank and self.alignment is not None:
                gain = self.alignment.applied(gain.float(), output.gain_features)
            # The features are many numbers, and have done their work.
            return replace(output, gain=gain, gain_features=None).map(torch.Tensor.cpu)

        return self.kept.use(ask)

    def _asked(
        self, release: Release, memories: tuple[Memory, ...], x: np.ndarray, run: RunAll = in_turn, rank: bool = True
    ) -> Output:
        """(1, n, …) outputs in the cohort's own class codes: every task is asked about the same rows."""
        x = x if self._other_levels is None else self._other_levels.not_known(x)
        device = memories[0].keys[0].device
        known = torch.from_numpy(~np.isnan(x)).to(device)
        values = torch.from_numpy(np.nan_to_num(x, nan=0.0)).to(device)
        query = release.module.query

        def ask(memory: Memory) -> Output:
            tasks = len(memory.keys[0])
            with torch.inference_mode():  # which each thread enters for itself
                return query(memory, values.expand(tasks, -1, -1), known.expand(tasks, -1, -1), rank=rank)  # type: ignore[operator, no-any-return]

        outputs = run([partial(ask, memory) for memory in memories])
        return averaged(outputs, memories) if self.codings is None else self.codings.decode(joined(outputs))

    @lazy
    def _other_levels(self) -> OtherLevels | None:
        """Of the rows that were read; None of a release to which a level that the cohort never had is another code."""
        if self.release.inference.unseen == AS_CODED:
            return None
        return OtherLevels.of(shorten(self.cohort, self.rows_read))

    def _prediction(self, output: Output, x: np.ndarray) -> np.ndarray | Predictive:
        """Of (1, n, …) outputs for (n, d) rows: the model's prediction, blended with the council's where there is one."""
        own = self._own_prediction(output)
        blended = own if self.council is None else self.council.blend(own, x)
        return replace(blended, reach=self.outcome_reach) if isinstance(blended, Predictive) else blended

    @lazy
    def outcome_reach(self) -> tuple[float, float]:
        """The least and the most that a continuous outcome can be."""
        return reach_of(self.cohort.y)

    def _own_prediction(self, output: Output) -> np.ndarray | Predictive:
        """Of (1, n, …) outputs: the distribution of a continuous outcome, or (n, K) calibrated probabilities."""
        if self.codings is None:
            return self.kept.use(lambda _, memories: Predictive.of(predictive(output, memories[0])))
        logits, settings = output.prediction.float().cpu()[0], self.release.inference
        if settings.prevalence:
            logits = logits + self._prevalence_shift
        # p^(exponent / temperature), normalised again, in double precision: rows sum to 1 within 1e-15.
        return (logits * (self.exponent / settings.temperature)).double().softmax(-1).numpy()

    @lazy
    def _prevalence_shift(self) -> torch.Tensor:
        """(K,) what log probabilities are moved by, so that they start from the cohort's class frequencies."""
        with torch.inference_mode():
            empty = self._query(np.full((1, len(self.cohort.names)), np.nan, np.float32)).prediction[0, 0].cpu()
        return prevalence_shift(empty, torch.from_numpy(self.cohort.y.copy()), self.release.inference.prevalence)

    # -- statistics of the cohort's columns -------------------------------------------------------------------------

    @lazy
    def scale(self) -> Columns:
        """The values by whose ranks results are foreseen: those of the rows that were read together first, as one task."""

        def first_task(release: Release, memories: tuple[Memory, ...]) -> Columns:
            # The others differ in the coding of classes, have fewer rows, or are of another part that is like this one.
            columns = memories[0].columns
            assert isinstance(columns, Columns)
            return replace(columns, **{name: tensor[:1].cpu() for name, tensor in vars(columns).items()})

        return self.kept.use(first_task)

    @lazy
    def levels(self) -> Levels:
        """Of `scale`."""
        return levels_of(self.scale)

    @lazy
    def shared_values(self) -> SharedValues:
        """Of `scale`."""
        return SharedValues.of(self.scale)

    @lazy
    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Median and standard deviation (d,) of each feature's recorded values, for distances between rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a column without any value
            # The median: one mistyped value does not move it.
            middle = np.nanmedian(self.cohort.x, axis=0)
            scale = np.nanstd(self.cohort.x, axis=0)
            if np.isinf(scale).any():  # of values whose squares a 32-bit float does not hold
                wide = np.nanstd(self.cohort.x.astype(np.float64), axis=0)
                scale = np.where(np.isinf(scale), wide, scale).astype(scale.dtype)
        return np.nan_to_num(middle), np.where(scale > 0, scale, 1.0)

    @lazy
    def typical(self) -> np.ndarray:
        """(3, d) recorded values at the 10th, 50th and 90th percentile, never interpolated: nobody has 2.4 children."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.nanquantile(self.cohort.x, [0.1, 0.5, 0.9], axis=0, method="nearest")


def _row(output: Output, row: int) -> Output:
    return output.map(lambda tensor: tensor[:, row : row + 1].clone())

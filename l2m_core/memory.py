"""The face of the library: a model, conditioned on a cohort, answers for any partly known patient.

`L2M.condition(cohort)` encodes the context once; `CohortMemory` then predicts, ranks, acquires and starts patients.
Everything here is arrays and tables; tensors stay below.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from l2m_core.answering.batching import MOST_AT_ONCE, Recent
from l2m_core.answering.calibration import sharpness_of
from l2m_core.answering.class_codings import Questions, even_rows, joined, prevalence_shift
from l2m_core.answering.parallel import Each, in_turn, side_by_side
from l2m_core.answering.predictive import Predictive
from l2m_core.answering.release import Release, load_release
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, FeatureError, RangeWarning
from l2m_core.lazy import lazy
from l2m_core.model.density import Density
from l2m_core.model.interface import Context, Memory, Output
from l2m_core.schema import Feature
from l2m_core.tables.allowed_numbers import is_refused
from l2m_core.tables.column_parsing import Rules, without_markers
from l2m_core.tables.entered_values import warn_unseen

if TYPE_CHECKING:
    from l2m_core.acquire.rollout import Rollout
    from l2m_core.step_through.patient import Patient

MOST_ROWS = (
    2048  # of a cohort that are read, or as many as the model was trained on: see `python -m train long_cohorts`
)
CONTEXT_CHUNK = 1024  # rows worked on at a time when conditioning
QUERY_CELLS = 2_000_000  # context cells × query rows read at a time; bounds peak memory


@dataclass(frozen=True)
class L2M:
    """A loaded model. `condition` is all it does; it is never changed by a cohort."""

    release: Release

    @property
    def name(self) -> str:
        return self.release.name

    @property
    def fingerprint(self) -> str:
        return self.release.fingerprint

    @property
    def card(self) -> str:
        return self.release.card

    def check(self, cohort: Cohort) -> tuple[str, ...]:
        """Sentences on where the cohort lies outside the trained range; refuses what cannot be answered at all."""
        trained = self.release.trained
        if cohort.n_classes > trained.classes:
            raise CohortError(
                f"Outcome '{cohort.schema.outcome.name}' has {cohort.n_classes} classes; model '{self.name}' supports "
                f"at most {trained.classes}. Merge rare classes."
            )
        if cohort.kind not in trained.outcomes:
            raise CohortError(
                f"Model '{self.name}' was not trained for a {cohort.kind} outcome ({', '.join(trained.outcomes)} only)."
            )
        found = []
        for what, have, most in (
            ("features", len(cohort.names), trained.features),
            ("context rows", min(len(cohort), self.most_rows), trained.context_rows),
        ):
            if have > most:
                found.append(
                    f"The cohort has {have:,} {what}, {have / most:.1f} times the {most:,} that model '{self.name}' was "
                    f"trained on; its answers may be worse than measured."
                )
        if len(cohort) > self.most_rows:
            found.append(
                f"The cohort has {len(cohort):,} rows; model '{self.name}' reads an even part of {self.most_rows:,}, since more "
                f"would tell it nothing and take time."
            )
        return tuple(found)

    @property
    def most_rows(self) -> int:
        """Rows of a cohort that are read, at most."""
        return max(MOST_ROWS, self.release.trained.context_rows)

    def condition(self, cohort: Cohort) -> CohortMemory:
        """Reads the cohort once; every later question costs a query, not a cohort."""
        notes = self.check(cohort)
        for note in notes:
            warnings.warn(note, RangeWarning, stacklevel=2)
        memory = self._read(cohort, notes, side_by_side)
        spread = self.release.inference.sharpness
        if not spread:
            return memory
        return replace(memory, sharpness=sharpness_of(cohort, lambda part: self._read(part).predict_array, spread))

    def _read(self, cohort: Cohort, notes: tuple[str, ...] = (), each: Each = in_turn) -> CohortMemory:
        """With predictions as sure as the model has them."""
        parameter = next(self.release.module.parameters())
        part = cohort.rows(even_rows(torch.from_numpy(cohort.y.copy()), self.most_rows).numpy())
        context = Context(
            torch.from_numpy(np.nan_to_num(part.x, nan=0.0)).to(parameter.device)[None],
            torch.from_numpy(part.r.copy()).to(parameter.device)[None],
            torch.from_numpy(part.y.copy()).to(parameter.device)[None],
            None if cohort.kind == "continuous" else torch.tensor([cohort.n_classes], device=parameter.device),
            torch.from_numpy(cohort.categorical.copy()).to(parameter.device)[None],
        )
        questions: Questions | None = None
        contexts: tuple[Context, ...] = (context,)
        if context.n_classes is not None:
            inference = self.release.inference
            questions = Questions.of(cohort.n_classes, inference.views, inference.against_rest)
            contexts = questions.put(context, inference.care_rows)
        read = self.release.module.condition

        def condition(lot: Context) -> Memory:
            with torch.inference_mode():  # which each thread enters for itself
                return read(lot, chunk=CONTEXT_CHUNK)  # type: ignore[operator, no-any-return]

        memories = each([partial(condition, lot) for lot in contexts])
        return CohortMemory(self, cohort, tuple(memories), notes, questions)


@dataclass(frozen=True, eq=False)
class CohortMemory:
    """A model that has read a cohort."""

    model: L2M
    cohort: Cohort
    memories: tuple[Memory, ...]
    """Of the tasks that the cohort was put as, in order; those with as many rows stand together."""
    notes: tuple[str, ...] = ()
    """Where the cohort lies outside the trained range."""
    questions: Questions | None = None
    """How the cohort was put to the model, as the tasks of `memories`; None for a continuous outcome."""
    sharpness: float = 1.0
    """The exponent of predicted probabilities that the cohort's own rows ask for; see l2m_core/answering/calibration.py."""
    _recent: Recent = field(default_factory=Recent, repr=False)

    @property
    def nbytes(self) -> int:
        return sum(memory.nbytes for memory in self.memories)

    @property
    def classes(self) -> tuple[str, ...]:
        """Order of the columns of `predict`."""
        return self.cohort.classes

    # -- many patients at once --------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray | Predictive:
        """(n, classes) probabilities, or a Predictive over n. X: DataFrame, dict(s), or (n, d) array; NaN = unknown."""
        return self.answer(self.encode(X)).prediction

    def predict_array(self, x: np.ndarray) -> np.ndarray:
        """(n, classes) probabilities for (n, d) values that are encoded already."""
        prediction = self.answer(x).prediction
        assert isinstance(prediction, np.ndarray)
        return prediction

    def rank(self, X: Any) -> pd.DataFrame:
        """(n, acquirable features) gains in nats; NaN where already known."""
        x = self.encode(X)
        gain = np.where(np.isnan(x), self.answer(x).gain, np.nan)
        acquirable = self.cohort.acquirable
        index = X.index if isinstance(X, pd.DataFrame) else None
        names = [name for name, ask in zip(self.cohort.names, acquirable, strict=True) if ask]
        return pd.DataFrame(gain[:, acquirable], columns=names, index=index)

    def acquire(self, X_full: Any, budget: int = 8, policy: str | None = None, **options: Any) -> Rollout:
        """Rolls a policy out on rows whose values are there to be asked for: what is NaN cannot be had."""
        from l2m_core.acquire.rollout import roll_out

        return roll_out(self, self.encode(X_full), budget=budget, policy=policy, **options)

    def start(self, values: Mapping[str, Any] | None = None, **details: Any) -> Patient:
        """A patient of whom `values` are known; immutable, every step returns a new one."""
        from l2m_core.step_through.patient import Patient

        return Patient.start(self, values or {}, **details)

    # -- arrays -----------------------------------------------------------------------------------------------------

    def encode(self, X: Any) -> np.ndarray:
        """(n, d) float32, NaN = unknown."""
        if not isinstance(X, np.ndarray):
            return self.cohort.encode(X)
        if X.ndim != 2 or X.shape[1] != len(self.cohort.names):
            raise FeatureError(
                f"An array of patients must have {len(self.cohort.names)} columns in the order of cohort.names; "
                f"this one has the shape {X.shape}."
            )
        try:
            with np.errstate(over="ignore"):
                x = X.astype(np.float32)
        except (TypeError, ValueError) as error:
            raise FeatureError(
                "An array of patients must hold numbers. For texts, give a DataFrame or dicts."
            ) from error
        for column, feature in enumerate(self.cohort.features):
            x[:, column] = _checked_column(x[:, column], feature, self.cohort.rules_of(feature.name))
        return x

    def answer(self, x: np.ndarray) -> Answer:
        """x: (n, d) with NaN where unknown. A few questions share what is asked in the same moment, and what was lately."""
        with torch.inference_mode():
            parts = self._recent.answers(x, self._one_by_one) if 0 < len(x) <= MOST_AT_ONCE else self._ask(x)
            return Answer(
                self._prediction(torch.cat([part.prediction for part in parts], dim=1)),
                torch.cat([part.gain for part in parts], dim=1)[0].float().cpu().numpy(),
                torch.cat([part.policy for part in parts], dim=1)[0].float().cpu().numpy(),
            )

    def has_answered(self, x: np.ndarray) -> bool:
        """Whether answers to these few are at hand, so that asking costs nothing."""
        return self._recent.knows(x)

    def _one_by_one(self, x: np.ndarray) -> list[Output]:
        """The answer to each row by itself, asked together."""
        with torch.inference_mode():
            return [
                Output(*(tensor[:, row : row + 1].clone() for tensor in (part.prediction, part.policy, part.gain)))
                for part in self._ask(x, side_by_side)
                for row in range(part.gain.shape[1])
            ]

    def _ask(self, x: np.ndarray, each: Each = in_turn) -> list[Output]:
        """In chunks, so that memory stays bounded for any n."""
        cells = sum(memory.context_rows * (1 + x.shape[1]) * len(memory.keys[0]) for memory in self.memories)
        size = max(1, min(1024, QUERY_CELLS // max(1, cells)))
        return [self._query(part, each) for part in np.array_split(x, max(1, -(-len(x) // size)))]

    def _query(self, x: np.ndarray, each: Each = in_turn) -> Output:
        device = self.memories[0].keys[0].device
        known = torch.from_numpy(~np.isnan(x)).to(device)
        values = torch.from_numpy(np.nan_to_num(x, nan=0.0)).to(device)
        ask = self.model.release.module.query

        def put(memory: Memory) -> Output:
            tasks = len(memory.keys[0])
            with torch.inference_mode():  # which each thread enters for itself
                return ask(memory, values.expand(tasks, -1, -1), known.expand(tasks, -1, -1))  # type: ignore[operator, no-any-return]

        outputs = each([partial(put, memory) for memory in self.memories])
        return outputs[0] if self.questions is None else self.questions.answer(joined(outputs))

    @lazy
    def _shift(self) -> torch.Tensor:
        """(K,) what predictions are moved by, so that they start from the cohort's class frequencies."""
        with torch.inference_mode():
            empty = self._query(np.full((1, len(self.cohort.names)), np.nan, np.float32)).prediction[0, 0].cpu()
        y = torch.from_numpy(self.cohort.y.copy())
        return prevalence_shift(empty, y, self.model.release.inference.prevalence)

    def _prediction(self, logits: torch.Tensor) -> np.ndarray | Predictive:
        logits = logits.float().cpu()
        if self.questions is None:
            memory = self.memories[0]
            return Predictive(Density(logits, memory.outcome_shift.cpu(), memory.outcome_scale.cpu()))
        inference = self.model.release.inference
        moved = logits[0] + self._shift if inference.prevalence else logits[0]
        return (moved * (self.sharpness / inference.temperature)).double().softmax(-1).numpy()

    # -- how much the answer hangs on this very cohort ---------------------------------------------------------------

    def resampled(self, count: int = 8, seed: int = 0) -> tuple[CohortMemory, ...]:
        """Memories of `count` bootstrap samples of the cohort's rows, for uncertainty bands and stability."""
        generator = np.random.default_rng(seed)
        memories = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)
            for _ in range(count):
                rows = generator.integers(0, len(self.cohort), len(self.cohort))
                # As sure as the cohort itself: among rows drawn twice, those left out are known already.
                memories.append(replace(self.model._read(self.cohort.rows(np.sort(rows))), sharpness=self.sharpness))
        return tuple(memories)

    @lazy
    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Median and scale (d,) of each feature's recorded values, for judging which rows are near a patient."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            middle = np.nanmedian(self.cohort.x, axis=0)
            scale = np.nanstd(self.cohort.x, axis=0)
        return np.nan_to_num(middle), np.where(scale > 0, scale, 1.0)

    @lazy
    def typical(self) -> np.ndarray:
        """(3, d) recorded values at the 10th, 50th and 90th percentile; the nearest ones, since a count of 2.4 children
        helps nobody."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.nanquantile(self.cohort.x, [0.1, 0.5, 0.9], axis=0, method="nearest")


@dataclass(frozen=True)
class Answer:
    """prediction: (n, K) or Predictive; gain: (n, d) nats; policy: (n, d) logits; nothing is blocked."""

    prediction: np.ndarray | Predictive
    gain: np.ndarray
    policy: np.ndarray


def load(name: str = "general", device: str = "cpu", dtype: str = "float32") -> L2M:
    """The bundled general model; or another released one by name; or any folder that holds a model."""
    return L2M(load_release(name, device, dtype))


def _checked_column(values: np.ndarray, feature: Feature, rules: Rules) -> np.ndarray:
    """(n,) values as they are, NaN where a number means "not recorded"; codes beyond the levels become 'other', all
    else that cannot be is refused."""
    if feature.kind == "number":
        values = without_markers(values, rules)
        bad, must = is_refused(values, feature), feature.range_text or "finite"
    else:
        bad, must = (values < 0) | np.isinf(values) | (values != np.floor(values)), "a whole code, 0 or more"
        bad &= ~np.isnan(values)
        unseen = values > len(feature.levels)
        if unseen.any() and not bad.any():
            warn_unseen(feature, [float(value) for value in values[unseen]])
            values = np.where(unseen, np.float32(len(feature.levels)), values)
    if bad.any():
        row = int(bad.argmax())
        raise FeatureError(
            f"Row {row}, feature '{feature.name}': {values[row]:g} must be {must}. Correct it, or make it NaN (unknown)."
        )
    return values

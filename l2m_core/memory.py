"""The face of the library: a model, conditioned on a cohort, answers for any partly known patient.

`L2M.condition(cohort)` encodes the context once; `CohortMemory` then predicts, ranks, acquires and starts patients.
Everything here is arrays and tables; tensors stay in `answering/engine.py`.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.acquire.head_alignment import align_head
from l2m_core.acquire.rollout import Rollout, roll_out
from l2m_core.answering.calibration import calibration_exponent
from l2m_core.answering.engine import Answer, ConditionedModel, encode_cohort
from l2m_core.answering.predictive import Predictive
from l2m_core.answering.release import Release, load_release
from l2m_core.answering.row_order import arranged
from l2m_core.cohort import Cohort
from l2m_core.council.council import Council, Recipe
from l2m_core.errors import CohortError, FeatureError, InputError, RangeWarning, type_of
from l2m_core.lazy import lazy
from l2m_core.model.interface import Progress, ignore_progress
from l2m_core.model.parallel import RunAll, in_turn, side_by_side
from l2m_core.schema import Feature
from l2m_core.step_through.events import Event
from l2m_core.step_through.patient import Patient
from l2m_core.tables.allowed_numbers import is_refused
from l2m_core.tables.arrays import NO_NUMBERS
from l2m_core.tables.column_reading import ReadingRules, without_markers
from l2m_core.tables.entered_values import warn_unseen

__all__ = ["L2M", "Answer", "CohortMemory", "load"]

READING = 0.6
"""Share of the progress that is told for reading a cohort, where the gain head is then brought in line with it."""


@dataclass(frozen=True)
class L2M:
    """A loaded model. `condition` is all it does; it is never changed by a cohort."""

    release: Release

    def __repr__(self) -> str:
        return f"L2M({self.name!r}, {self.fingerprint[:12]})"

    @property
    def name(self) -> str:
        return self.release.name

    @property
    def fingerprint(self) -> str:
        return self.release.fingerprint

    @property
    def card(self) -> str:
        return self.release.card

    def rows_read(self, cohort: Cohort) -> int:
        """How many rows of the cohort are read; of a long one it is an even part."""
        return self.release.rows_read(cohort)

    def check(self, cohort: Cohort) -> tuple[str, ...]:
        """Sentences on where the cohort lies outside the trained range; refuses what cannot be answered at all."""
        return self.release.check(cohort)

    def condition(
        self,
        cohort: Cohort,
        exponent: float | None = None,
        progress: Progress = ignore_progress,
        council: bool | Recipe = False,
        rank: bool = True,
    ) -> CohortMemory:
        """Reads the cohort once; every later question costs a query, not a cohort.

        exponent: the calibration exponent of predicted probabilities, where it is known; else found from the cohort.
        progress: is called with the share that is done, from 0 to 1: of the reading, and of bringing the gain head in line.
        council: whether models fitted to the cohort's own rows are heard beside this one (it takes longer, and pays most in
        long cohorts); or the recipe of an earlier council, to have the same again.
        rank: whether it will be asked which tests tell most. For predictions alone the gain head is not brought in line, which
        takes most of the time in a short cohort.
        """
        if not isinstance(cohort, Cohort):
            raise CohortError(
                f"The cohort is {type_of(cohort)}. Make a Cohort of it: Cohort.from_frame(frame, outcome), from_file or "
                "from_arrays."
            )
        if exponent is not None and not (isinstance(exponent, numbers.Real) and 0 < exponent < math.inf):
            raise InputError(f"exponent is {exponent!r}; it must be a number above 0.")
        notes = self.check(cohort)
        for note in notes:
            warnings.warn(note, RangeWarning, stacklevel=2)
        states = self.release.inference.aligned_states if rank else 0
        share = READING if states else 1.0
        memory = self.read(cohort, side_by_side, lambda done: progress(share * done))
        spread = self.release.inference.exponent_spread
        if exponent is None:
            exponent = calibration_exponent(self._arranged(cohort), self._probabilities, spread) if spread else 1.0
        memory = replace(memory, notes=notes, exponent=exponent)
        if states:
            memory = memory.aligned(lambda done: progress(share + (1 - share) * done))
            progress(1.0)
        if isinstance(council, Recipe):
            return memory.under(council)
        return memory.with_council(memory.fit_council()) if council else memory

    def read(self, cohort: Cohort, run: RunAll = in_turn, progress: Progress = ignore_progress) -> CohortMemory:
        """As `condition`, with the model's own probabilities, and with nothing checked. run: how its batches are run."""
        kept, codings = encode_cohort(self.release, self._arranged(cohort), run, progress)
        return CohortMemory(self.release, cohort, kept, codings=codings)

    def _arranged(self, cohort: Cohort) -> Cohort:
        return arranged(cohort, self.release.inference.row_order)

    def _probabilities(self, cohort: Cohort):
        return self.read(cohort).predict_array


@dataclass(frozen=True, eq=False)
class CohortMemory(ConditionedModel):
    """A model that has read a cohort."""

    def __repr__(self) -> str:
        return f"CohortMemory({self.model!r} on {self.cohort!r})"

    @lazy
    def model(self) -> L2M:
        return L2M(self.release)

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
        """(n, acquirable features) estimated gains in nats; NaN where already known.

        By the gain head, which answers for many patients at once; `Patient.ranking` computes those of the tests that could
        come first from the model's answers, and a single estimate can be off from these by a factor of two or three.
        """
        x = self.encode(X)
        gain = np.where(np.isnan(x), self.answer(x).gain, np.nan)
        acquirable = self.cohort.acquirable
        index = X.index if isinstance(X, pd.DataFrame) else None
        names = [name for name, ask in zip(self.cohort.names, acquirable, strict=True) if ask]
        return pd.DataFrame(gain[:, acquirable], columns=names, index=index)

    def acquire(self, X_full: Any, budget: int = 8, policy: str | None = None, **options: Any) -> Rollout:
        """Rolls a policy out on rows whose values are there to be asked for: what is NaN cannot be had."""
        return roll_out(self, self.encode(X_full), budget=budget, policy=policy, **options)

    # -- one patient ------------------------------------------------------------------------------------------------

    def start(self, values: Mapping[str, Any] | None = None, **details: Any) -> Patient:
        """A patient of whom `values` are known; immutable, every step returns a new one."""
        return Patient.start(self, {} if values is None else values, **details)

    def replay(self, events: Sequence[Event], **details: Any) -> Patient:
        """The patient that a recorded list of events leads to."""
        return Patient.replay(self, events, **details)

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
        if X.dtype.kind in NO_NUMBERS:
            raise FeatureError(f"An array of patients must hold numbers; this one holds {X.dtype}.")
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

    def aligned(self, progress: Progress = ignore_progress) -> CohortMemory:
        """This memory, its gain head brought in line with its own answers, where its release says so."""
        states = self.release.inference.aligned_states
        rows = arranged(self.cohort, self.release.inference.row_order).x
        return replace(self, alignment=align_head(self, rows, states, progress)) if states else self

    # -- models fitted to the cohort's own rows ---------------------------------------------------------------------

    def fit_council(
        self, seed: int = 0, check: Callable[[], None] = lambda: None, members: Mapping[str, float] | None = None
    ) -> Council:
        """Models fitted to the cohort's rows, and how much weight each has beside this one. It reads parts of the cohort
        again, so it takes several times as long as reading it; `with_council` then costs nothing.

        check: is called now and then, and may end the work by raising; members: the weight of each before any row has
        spoken, those of `l2m_core.council.fitting.expected_weights` by default."""
        from l2m_core.council.fitting import fit_council  # needs scikit-learn, which not every machine has

        return fit_council(self.cohort, self._read_part, seed, check, members)

    def with_council(self, council: Council | None) -> CohortMemory:
        """This memory, with its predictions blended with the council's; None: the model's alone. Nothing is read again."""
        return replace(self, council=council)

    def under(self, recipe: Recipe | None) -> CohortMemory:
        """As `with_council`, with the council of this recipe, which is fitted again if it is another than the present one."""
        if recipe == self.recipe:
            return self
        if recipe is None:
            return self.with_council(None)
        from l2m_core.council.fitting import rebuild

        return self.with_council(rebuild(self.cohort, recipe))

    @property
    def recipe(self) -> Recipe | None:
        """Of the council that predictions are blended with."""
        return self.council.recipe if isinstance(self.council, Council) else None

    def _read_part(self, part: Cohort) -> Callable[[np.ndarray], np.ndarray | Predictive]:
        memory = replace(self.model.read(part), exponent=self.exponent)
        return lambda x: memory.answer(x).prediction

    # -- how much the answer depends on this very cohort --------------------------------------------------------------

    def resampled(self, count: int = 8, seed: int = 0, rows: int | None = None) -> tuple[CohortMemory, ...]:
        """Memories of `count` bootstrap samples of the cohort's patients, for uncertainty bands and stability.

        rows: of each sample; fewer than the cohort has, where reading it so often would take too much. Bands allow for it.
        """
        for what, value, least in (("count", count, 1), ("seed", seed, 0), ("rows", rows, 1)):
            if value is None and what == "rows":
                continue
            if not isinstance(value, numbers.Integral):
                raise InputError(f"{what} is {value!r}; it must be a whole number of at least {least}.")
            if value < least:
                raise InputError(f"{what} is {value}; it must be at least {least}.")
        generator = np.random.default_rng(seed)
        cohort = arranged(self.cohort, self.release.inference.row_order)
        samples = [bootstrap_rows(cohort, rows or len(cohort), generator) for _ in range(count)]
        # With the cohort's own exponent, council and alignment: in a sample, rows left out have copies among the rows that are
        # read, and one alignment for all leaves what differs to the samples.
        read = (self.model.read(cohort.rows(rows)) for rows in samples)
        return tuple(
            replace(memory, exponent=self.exponent, council=self.council, alignment=self.alignment) for memory in read
        )


def bootstrap_rows(cohort: Cohort, rows: int, generator: np.random.Generator) -> np.ndarray:
    """(about `rows`,) rows of patients drawn with replacement, each with all rows of his."""
    if cohort.patients is None:
        return np.sort(generator.integers(0, len(cohort), rows))
    patients, patient = np.unique(cohort.patients, return_inverse=True)
    drawn = generator.integers(0, len(patients), max(1, round(len(patients) * rows / len(cohort))))
    return np.repeat(np.arange(len(cohort)), np.bincount(drawn, minlength=len(patients))[patient])


def load(name: str = "general", device: str | None = None, dtype: str = "float32") -> L2M:
    """The bundled general model; or another released one by name; or any folder that holds a model.

    device: "auto" (a GPU that is there and has room, else the CPU), "cpu", "cuda" or "cuda:1"; None: as the variable
    L2M_DEVICE says, else "auto". Where a GPU fails, a warning says so, and the CPU goes on.
    dtype: "float32" or "bfloat16".
    """
    return L2M(load_release(name, device, dtype))


def _checked_column(values: np.ndarray, feature: Feature, rules: ReadingRules) -> np.ndarray:
    """(n,) the values, with NaN where a number means "not recorded", and codes beyond the levels as 'other'.

    Refuses a number out of the feature's range, and a code that is negative, infinite or not whole.
    """
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

"""What the model makes of a step-through at each of its steps, computed once and shared by all who look at it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd

from app.host import services
from app.host.cache import Bounded
from app.host.services import Conditioned
from app.ui.step_through.stored_events import Record, read
from l2m_core.answering.batching import MOST_AT_ONCE
from l2m_core.errors import ModelFileError
from l2m_core.lazy import lazy
from l2m_core.memory import L2M, CohortMemory
from l2m_core.step_through.events import Event, effective
from l2m_core.step_through.patient import Patient, Test
from l2m_core.step_through.trace import Step, step_of

LEVEL = 0.9  # share of resampled cohorts that the band covers
ViewKey = tuple[str, str | None]  # hash of the last event, and the policy that ranks
BREATH = 0.4  # seconds before bands are computed: meanwhile the browser, perhaps on the same machine, draws the answer


@dataclass(frozen=True)
class Uncertainty:
    """Under resampled cohorts: outcome → (low, high); feature → share of them in which it comes first."""

    band: dict[str, tuple[float, float]]
    stability: dict[str, float]
    count: int


@dataclass(eq=False)
class StepView:
    """A patient at one step, with everything that the page shows of it; each part is computed when first asked for."""

    patient: Patient
    key: ViewKey
    previews: Bounded = field(default_factory=lambda: Bounded(100))

    @property
    def uncertainty_key(self) -> tuple[str, str | None, str]:
        return (*self.key, "uncertainty")

    @lazy
    def step(self) -> Step:
        return step_of(self.patient)

    @property
    def tests(self) -> tuple[Test, ...]:
        """Best first."""
        return self.patient.tests

    @lazy
    def last_event(self) -> Event:
        """What led here, undone events aside."""
        return effective(self.patient.events)[-1]

    def preview(self, name: str) -> pd.DataFrame:
        return self.previews.get(name, lambda: self.patient.preview(name))

    @lazy
    def statuses(self) -> dict[str, str]:
        """Feature → why it is not open."""
        return {test.feature: test.status for test in self.tests if test.status != "open"}

    def resample(self, memories: tuple[CohortMemory, ...]) -> Uncertainty:
        band = self.patient.band(memories, LEVEL)
        return Uncertainty(
            {str(row.outcome): (float(row.low), float(row.high)) for row in band.itertuples()},
            {str(name): float(share) for name, share in self.patient.stability(memories).items()},
            len(memories),
        )


def _resample_wanted(conditioned: Conditioned, memories: tuple[CohortMemory, ...]) -> None:
    """What several people wait for is asked together: that costs little more than one of them."""
    time.sleep(BREATH)
    while not conditioned.wanted.empty():
        wanted: dict[ViewKey, StepView] = {}
        while len(wanted) < MOST_AT_ONCE and not conditioned.wanted.empty():
            view = conditioned.wanted.get()
            wanted[view.key] = view
        x = np.concatenate([view.patient.x for view in wanted.values()])
        for memory in memories:
            memory.answer(x)
        for view in wanted.values():
            conditioned.views.get(view.uncertainty_key, partial(view.resample, memories))


@dataclass(frozen=True)
class StepAnswers:
    """A step-through as it stands. views: after each event that still counts, so the last one is the present."""

    record: Record
    conditioned: Conditioned
    views: tuple[StepView, ...]

    @property
    def view(self) -> StepView:
        return self.views[-1]

    @property
    def patient(self) -> Patient:
        return self.view.patient

    @property
    def numbers(self) -> list[int]:
        """Of each view, the number of the event that led to it: undone ones are counted and have no view."""
        position = {event.id: number for number, event in enumerate(self.record.events)}
        return [position[view.last_event.id] for view in self.views]

    @property
    def before(self) -> StepView | None:
        return self.views[-2] if len(self.views) > 1 else None

    @property
    def advice(self) -> str | None:
        """Why to stop now, in words; None to go on."""
        patient = self.patient
        return self.record.settings.stopping.reason(
            patient.answer.prediction, patient.best_gain, patient.steps, patient.spent
        )

    @property
    def uncertainty(self) -> Uncertainty | None:
        """Of the present, where it is computed already."""
        return self.conditioned.views.peek(self.view.uncertainty_key)

    def uncertainties(self) -> list[Uncertainty | None]:
        """Of each view, where it is computed already."""
        return [self.conditioned.views.peek(view.uncertainty_key) for view in self.views]

    def begin_uncertainties(self) -> None:
        """Has those that are missing computed in the background, as soon as the resampled cohorts are there."""
        shared = services.get()
        memories = shared.resampled(self.conditioned)
        if not memories:
            return
        for view, known in zip(self.views, self.uncertainties(), strict=True):
            if known is None:
                self.conditioned.wanted.put(view)
        shared.background.submit(_resample_wanted, self.conditioned, memories)

    @property
    def resampling(self) -> str:
        """'possible', 'preparing' or 'impossible' (the cohort is too large to be read several times)."""
        memories = services.get().resampled(self.conditioned)
        return "preparing" if memories is None else "possible" if memories else "impossible"


def load(owner: str, step_through_id: str) -> StepAnswers:
    """The step-through as it is stored now, replayed. Only what nobody computed before is computed."""
    record = read(owner, step_through_id)
    return answers_of(record, condition(owner, record))


def condition(owner: str, record: Record) -> Conditioned:
    """The record's own model, having read its own cohort."""
    return services.get().conditioned(owner, record.cohort, model_of(owner, record))


def model_of(owner: str, record: Record) -> L2M:
    model = services.get().model_of(owner, record.step_through.model_fingerprint)
    if model is None:
        raise ModelGone(record)
    return model


def answers_of(record: Record, conditioned: Conditioned) -> StepAnswers:
    position = {event.id: number for number, event in enumerate(record.events)}
    ends = [position[event.id] + 1 for event in effective(record.events)]
    # The last view holds all events, so that what follows is appended to the whole record, undone steps included.
    ends[-1] = len(record.events)
    return StepAnswers(record, conditioned, tuple(view_after(record, end, conditioned) for end in ends))


def view_after(record: Record, count: int, conditioned: Conditioned) -> StepView:
    """After the record's first `count` events, ranked by its present rules."""
    key = (record.hashes[count - 1], record.settings.policy)
    return conditioned.views.get(key, lambda: StepView(record.patient(conditioned.memory, count), key))


def keep(present: StepAnswers, event_hash: str, after: Patient) -> None:
    """What was computed to make an event is what will be shown after it."""
    key = (event_hash, present.record.settings.policy)
    present.conditioned.views.get(key, lambda: StepView(after, key))


class ModelGone(ModelFileError):
    """The model that a step-through was made with is not here; its record can still be read."""

    def __init__(self, record: Record) -> None:
        super().__init__(
            f"This step-through was made with a model (fingerprint {record.step_through.model_fingerprint[:12]}…) that "
            "is not installed any more, so its answers cannot be shown again. Its record is safe. You can begin a new "
            "step-through with the same values and a present model."
        )
        self.record = record

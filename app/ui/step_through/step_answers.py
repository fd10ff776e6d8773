"""The model's answers at each step of a step-through, computed once and shared by all sessions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd

from app.cache import BoundedCache
from app.host import services
from app.host.services import Conditioned
from app.ui.step_through.stored_events import Record, Rules, read
from l2m_core.answering.batching import MOST_AT_ONCE
from l2m_core.cohort import Cohort
from l2m_core.errors import ModelFileError
from l2m_core.lazy import lazy
from l2m_core.memory import L2M, CohortMemory
from l2m_core.schema import Outcome
from l2m_core.step_through.candidates import Candidate
from l2m_core.step_through.events import Event, effective
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.trace import Step, step_of
from l2m_core.step_through.verdict import Verdict, told_together, typical_move_in_words, verdict

LEVEL = 0.9  # share of resampled cohorts that the band covers
# Hash of the last event, and what decides which test is suggested: the policy that ranks, and the cost budget.
ViewKey = tuple[str, str | None, float | None]
BREATH = 0.4  # seconds before bands are computed: meanwhile the browser, perhaps on the same machine, draws the answer


@dataclass(frozen=True)
class Uncertainty:
    """Under resampled cohorts: outcome → (low, high); feature → share of them in which it comes first."""

    band: dict[str, tuple[float, float]]
    stability: dict[str, float]
    count: int
    pair: str = ""
    """Where no test tells much alone: a sentence on two that do so together."""


@dataclass(eq=False)
class StepView:
    """A patient at one step, with everything that the page shows; each part is computed at its first use."""

    patient: Patient
    key: ViewKey
    previews: BoundedCache = field(default_factory=lambda: BoundedCache(100))

    @property
    def uncertainty_key(self) -> tuple[str | float | None, ...]:
        return (*self.key, "uncertainty")

    @lazy
    def step(self) -> Step:
        return step_of(self.patient)

    @property
    def tests(self) -> tuple[Candidate, ...]:
        """Best first."""
        return self.patient.tests

    @lazy
    def last_event(self) -> Event:
        """The event that led to this step; undone events do not count."""
        return effective(self.patient.events)[-1]

    def preview(self, name: str) -> pd.DataFrame:
        return self.previews.get(name, lambda: self.patient.preview(name))

    @lazy
    def statuses(self) -> dict[str, str]:
        """Feature → why it is not open."""
        return {test.feature: test.status for test in self.tests if test.status != "open"}

    @lazy
    def moves(self) -> dict[str, str]:
        """Open feature → by how much its result typically moves the prediction, in words."""
        return {name: typical_move_in_words(self.patient, name) for name in self.step.gains}

    def resample(self, memories: tuple[CohortMemory, ...]) -> Uncertainty:
        band = self.patient.band(memories, LEVEL)
        return Uncertainty(
            {str(row.outcome): (float(row.low), float(row.high)) for row in band.itertuples()},
            {str(name): float(share) for name, share in self.patient.stability(memories).items()},
            len(memories),
            # Looked for with the band, in the background: it takes as long as several rankings.
            told_together(self.patient),
        )


def _resample_wanted(conditioned: Conditioned, memories: tuple[CohortMemory, ...]) -> None:
    """Compute the bands that several sessions wait for in one batch, which costs little more than one band."""
    time.sleep(BREATH)
    while not conditioned.wanted.empty():
        wanted: dict[ViewKey, StepView] = {}
        while len(wanted) < MOST_AT_ONCE and not conditioned.wanted.empty():
            key, view = conditioned.wanted.get()
            wanted[key] = view
        x = np.concatenate([view.patient.x for view in wanted.values()])
        for memory in memories:
            memory.answer(x)
        for view in wanted.values():
            conditioned.views.get(view.uncertainty_key, partial(view.resample, memories))


@dataclass(frozen=True)
class StepAnswers:
    """A step-through as it is now. views: the patient after each event that counts; the last one is the present."""

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
    def cohort(self) -> Cohort:
        return self.patient.memory.cohort

    @property
    def outcome(self) -> Outcome:
        return self.cohort.schema.outcome

    @property
    def posterior(self) -> Mapping[str, float]:
        return self.view.step.posterior

    @property
    def posterior_before(self) -> Mapping[str, float] | None:
        """That of the last step; None at the first."""
        return self.before.step.posterior if self.before else None

    @property
    def numbers(self) -> list[int]:
        """For each view the number of its event. Undone events have a number but no view."""
        position = {event.id: number for number, event in enumerate(self.record.events)}
        return [position[view.last_event.id] for view in self.views]

    @property
    def before(self) -> StepView | None:
        return self.views[-2] if len(self.views) > 1 else None

    @property
    def advice(self) -> str | None:
        """Why to stop now, in words; None where the rules say to continue."""
        return self.patient.advice_by(self.record.settings.stopping)

    @lazy
    def verdict(self) -> Verdict:
        """What to do now, by the ranking, the preview and the rules in force."""
        return verdict(self.patient, self.record.settings.stopping)

    @property
    def uncertainty(self) -> Uncertainty | None:
        """Of the present; None until it is computed."""
        return self.conditioned.views.peek(self.view.uncertainty_key)

    def uncertainties(self) -> list[Uncertainty | None]:
        """Of each view; None until it is computed."""
        return [self.conditioned.views.peek(view.uncertainty_key) for view in self.views]

    def begin_uncertainties(self) -> None:
        """Compute the missing bands in the background, once the resampled cohorts are ready."""
        shared = services.get()
        memories = shared.resampled(self.conditioned)
        if not memories:
            return
        for view, known in zip(self.views, self.uncertainties(), strict=True):
            if known is None:
                self.conditioned.wanted.put((view.key, view))
        shared.background.submit(_resample_wanted, self.conditioned, memories)

    @property
    def resampling(self) -> str:
        """'possible', 'preparing' or 'impossible' (the cohort is too large to be read several times)."""
        memories = services.get().resampled(self.conditioned)
        return "preparing" if memories is None else "possible" if memories else "impossible"


def load(owner: str, step_through_id: str) -> StepAnswers:
    """The step-through as it is stored now, replayed. Views that are cached are not computed again."""
    record = read(owner, step_through_id)
    return answers_of(record, condition(owner, record))


def condition(owner: str, record: Record) -> Conditioned:
    """The record's model, conditioned on its cohort."""
    shared = services.get()
    return shared.under(shared.conditioned(owner, record.cohort, model_of(owner, record)), record.council)


def model_of(owner: str, record: Record) -> L2M:
    model = services.get().model_of(owner, record.step_through.model_fingerprint)
    if model is None:
        raise ModelGone(record)
    return model


def answers_of(record: Record, conditioned: Conditioned) -> StepAnswers:
    position = {event.id: number for number, event in enumerate(record.events)}
    ends = [position[event.id] + 1 for event in effective(record.events)]
    # The last view holds all events, undone ones included, since the next event follows the whole record.
    ends[-1] = len(record.events)
    return StepAnswers(record, conditioned, tuple(view_after(record, end, conditioned) for end in ends))


def view_after(record: Record, count: int, conditioned: Conditioned) -> StepView:
    """After the record's first `count` events, ranked by its present rules."""
    key = _key_of(record.hashes[count - 1], record.settings)
    return conditioned.views.get(key, lambda: StepView(record.patient(conditioned.memory, count), key))


def _key_of(event_hash: str, rules: Rules) -> ViewKey:
    return event_hash, rules.policy, rules.stopping.cost_budget


def advice_after(record: Record, count: int, conditioned: Conditioned) -> Verdict:
    """What the page advised after the record's first `count` events, by the rules in force then."""
    then = record.until(count)
    view, stopping = view_after(then, count, conditioned), then.settings.stopping
    return conditioned.views.get((*view.key, stopping, "advice"), lambda: verdict(view.patient, stopping))


def measured_against_advice(record: Record, conditioned: Conditioned) -> frozenset[int]:
    """Numbers of the events that brought a result although the advice was to stop."""
    return frozenset(
        number
        for number, event in enumerate(record.events)
        if number and event.kind == "observe" and advice_after(record, number, conditioned).action == "stop"
    )


def cache_view(present: StepAnswers, event_hash: str, after: Patient) -> None:
    """Cache the patient that an event was made with as the view after that event."""
    key = _key_of(event_hash, present.record.settings)
    present.conditioned.views.get(key, lambda: StepView(after, key))


class ModelGone(ModelFileError):
    """The model of a step-through is not installed; its record can still be read."""

    def __init__(self, record: Record) -> None:
        super().__init__(
            f"This step-through was made with a model (fingerprint {record.step_through.model_fingerprint[:12]}…) that "
            "is not installed any more, so its predictions cannot be shown. Its record is safe. You can begin a new "
            "step-through with the same values and another model."
        )
        self.record = record

"""Loads a recorded step-through: every event, with the prediction and the ranking after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.host import services
from app.host.services import Conditioned
from app.store import StoredEvent
from app.ui.step_through import step_answers
from app.ui.step_through.step_answers import StepAnswers
from app.ui.step_through.stored_events import READ, Record, record_of
from l2m_core.answering.devices import CPU
from l2m_core.errors import L2MError
from l2m_core.lazy import lazy
from l2m_core.schema import Schema
from l2m_core.step_through.events import Event, effective, fold, undone_by
from l2m_core.step_through.trace import Step, Trace, versions


@dataclass(frozen=True)
class LoadedTrace:
    """A record with its trace.

    trace: the core's, one step for each event; stored: all events of the chain, settings included.
    conditioned: its model with its cohort, or None with the reason in `absent`.
    """

    record: Record
    stored: tuple[StoredEvent, ...]
    schema: Schema
    trace: Trace
    conditioned: Conditioned | None
    absent: str = ""

    @property
    def label(self) -> str:
        return self.record.step_through.title or "Step-through"

    @property
    def events(self) -> tuple[Event, ...]:
        return self.record.events

    def at(self, number: int) -> StepAnswers | None:
        """The step-through as it stood after event `number`, as the step-through page shows it."""
        return step_answers.answers_of(self.record.until(number + 1), self.conditioned) if self.conditioned else None

    @property
    def counting(self) -> list[Step]:
        """The steps that were not taken back."""
        kept = {event.id for event in effective(self.events)}
        return [step for step in self.trace.steps if step.event.id in kept]

    @lazy
    def against_advice(self) -> frozenset[int]:
        """Numbers of the events that brought a result although the advice was to stop; none are known without the model."""
        return step_answers.measured_against_advice(self.record, self.conditioned) if self.conditioned else frozenset()

    @property
    def tests_against_advice(self) -> int:
        """How many of them were not taken back."""
        kept = {step.event.id for step in self.counting}
        return sum(self.events[number].id in kept for number in self.against_advice)

    @property
    def undone_by(self) -> dict[int, int]:
        """Number of each event that was taken back → number of the undo that did it."""
        return undone_by(self.events)


def load(
    owner: str, step_through_id: str, condition: Callable[[str, Record], Conditioned] = step_answers.condition
) -> LoadedTrace:
    """NotFound for another owner's. Where model or cohort is gone, the trace holds what was recorded.

    A page passes `conditioning.condition`, which shows a spinner meanwhile.
    """
    here = services.get()
    store = here.store
    step_through, stored = store.step_throughs.read(owner, step_through_id)
    here.note_read(owner, READ, step_through.id)
    record = record_of(step_through, store.cohorts.get(owner, step_through.cohort_id), stored)
    schema = Schema.from_yaml(record.cohort.schema_yaml)
    try:
        conditioned = condition(owner, record)
    except L2MError as refusal:
        # Where only the cohort is gone, the model is still there to be named.
        model = here.model_of(owner, step_through.model_fingerprint)
        trace = _trace(record, schema, _recorded_steps(record, schema), "" if model is None else model.name)
        return LoadedTrace(record, stored, schema, trace, None, str(refusal))
    memory = conditioned.memory
    trace = _trace(record, schema, _replayed_steps(record, conditioned), memory.model.name, str(memory.device))
    return LoadedTrace(record, stored, schema, trace, conditioned)


def _replayed_steps(record: Record, conditioned: Conditioned) -> list[Step]:
    """Replayed, each under the rules in force then."""
    counts = range(1, len(record.events) + 1)
    return [step_answers.view_after(record.until(count), count, conditioned).step for count in counts]


def _recorded_steps(record: Record, schema: Schema) -> list[Step]:
    """From the events alone: the predictions and suggestions of the time, without gains."""
    steps = []
    for number, (event, believed) in enumerate(zip(record.events, record.believed, strict=True)):
        following = record.events[number + 1].suggested if number + 1 < len(record.events) else None
        spent = spent_after(record.events[: number + 1], schema)
        steps.append(Step(event, believed or {}, {}, following, spent))
    return steps


def _trace(record: Record, schema: Schema, steps: list[Step], model: str, device: str = CPU) -> Trace:
    """model: its name, '' where it is not installed; device: where the steps were computed, if they were."""
    step_through = record.step_through
    return Trace(
        tuple(steps),
        model,
        step_through.model_fingerprint,
        record.cohort.name,
        step_through.cohort_hash,
        schema.outcome.name,
        versions(),
        record.council,
        device,
    )


def spent_after(events: tuple[Event, ...], schema: Schema) -> float:
    """Cost of all that was measured, from the events alone."""
    return schema.spent(fold(events).acquired)

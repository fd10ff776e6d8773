"""A step-through as it is stored: the core's events and the page's settings, in one chain.

An event has three shapes: the core's `Event`, the store's link (`StoredEvent`: JSON and hash), and the row of an
export (the core's `Step`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from app.host import services
from app.store import NewEvent, NotFound, StepThrough, StoredCohort, StoredEvent
from l2m_core.acquire.stopping import Stopping
from l2m_core.council.council import Recipe
from l2m_core.memory import CohortMemory
from l2m_core.step_through.events import Event
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.trace import summarise

SETTINGS = "settings"  # kind of an event that says how to rank and when to stop; nothing is known by it
READ = "step-through read"  # kind of an act in the audit trail
BELIEVED = "believed"  # part of an event's payload: the posterior that followed it, as it was shown
COUNCIL = "council"  # part of the first event's payload: the recipe of the council that was heard, where one was
POLICIES = ("gain", "gain per cost", "learned")


@dataclass(frozen=True)
class Rules:
    """How to rank and when to advise stopping. policy None: the model's own default."""

    stopping: Stopping = field(default_factory=Stopping)
    policy: str | None = None

    def to_payload(self) -> dict[str, Any]:
        return {"stopping": {k: v for k, v in asdict(self.stopping).items() if v is not None}, "policy": self.policy}

    @classmethod
    def from_payload(cls, payload: dict[str, Any]) -> Rules:
        return cls(Stopping(**payload["stopping"]), payload["policy"])


@dataclass(frozen=True)
class RulesChange:
    """Rules that were stored at a time (at), after some of the core's events (their number)."""

    after: int
    at: datetime
    settings: Rules


@dataclass(frozen=True)
class Record:
    """A stored step-through.

    events: the core's, in order; hashes: theirs in the chain; believed: the posterior shown after each, where stored.
    rules: for each event the settings in force when the next one came; settings: those now; rules_set: their changes.
    """

    step_through: StepThrough
    cohort: StoredCohort
    events: tuple[Event, ...]
    hashes: tuple[str, ...]
    believed: tuple[Mapping[str, float] | None, ...]
    rules: tuple[Rules, ...]
    settings: Rules
    rules_set: tuple[RulesChange, ...]
    event_ids: frozenset[str]
    council: Recipe | None = None
    """Of the council that the step-through began with; None: the model answers alone."""

    def answering(self, model: str) -> str:
        """Who answers: the model, and those of its council."""
        return f"{model} {self.council.in_brief}" if self.council else model

    @property
    def id(self) -> str:
        return self.step_through.id

    @property
    def length(self) -> int:
        """Number of stored events of any kind, which the next one has to follow."""
        return self.step_through.length

    def patient(self, memory: CohortMemory, count: int | None = None) -> Patient:
        """The patient after the first `count` events (by default all), ranked by the present rules."""
        return Patient.replay(memory, self.events[:count], **_of_patient(self.settings))

    def patients(self, memory: CohortMemory) -> tuple[Patient, ...]:
        """The patient after each event, ranked by the rules in force then."""
        whole = Patient.replay(memory, self.events)
        return tuple(replace(whole.until(count), **_of_patient(rules)) for count, rules in enumerate(self.rules, 1))

    def until(self, count: int) -> Record:
        """The record after its first `count` events, just before the next one."""
        return replace(
            self,
            events=self.events[:count],
            hashes=self.hashes[:count],
            believed=self.believed[:count],
            rules=self.rules[:count],
            settings=self.rules[count - 1],
            rules_set=tuple(change for change in self.rules_set if change.after <= count),
        )


def _of_patient(rules: Rules) -> dict[str, Any]:
    """The rules as fields of a `Patient`."""
    return {"stopping": rules.stopping, "policy": rules.policy}


def read(owner: str, step_through_id: str) -> Record:
    """The record as it is now; NotFound for another owner's."""
    here = services.get()
    store = here.store
    step_through, stored = store.step_throughs.read_on(owner, step_through_id)
    here.note_read(owner, READ, step_through.id)
    return record_of(step_through, store.cohorts.get(owner, step_through.cohort_id), stored)


def is_current(owner: str, record: Record) -> bool:
    """Whether the record is as it was read: nothing was added, and it was not deleted."""
    try:
        return services.get().store.step_throughs.get(owner, record.id).length == record.length
    except NotFound:
        return False


def record_of(step_through: StepThrough, cohort: StoredCohort, stored: Sequence[StoredEvent]) -> Record:
    core = [event for event in stored if event.kind != SETTINGS]
    payloads = [{**event.payload} for event in core]
    believed = tuple(payload.pop(BELIEVED, None) for payload in payloads)
    council = _recipe_of(payloads[0]) if payloads else None
    rules: list[Rules] = []
    rules_set: list[RulesChange] = []
    settings = Rules()
    for event in stored:
        if event.kind == SETTINGS:
            settings = Rules.from_payload(event.payload)
            rules_set.append(RulesChange(len(rules), event.recorded_at, settings))
            rules[-1:] = [settings] if rules else []
        else:
            rules.append(settings)
    return Record(
        step_through,
        cohort,
        tuple(Event.from_dict(payload) for payload in payloads),
        tuple(event.hash for event in core),
        believed,
        tuple(rules),
        settings,
        tuple(rules_set),
        frozenset(event.event_id for event in stored),
        council,
    )


def _recipe_of(payload: dict[str, Any]) -> Recipe | None:
    """Takes the council's recipe out of the payload of a step-through's first event."""
    plain = payload.pop(COUNCIL, None)
    return None if plain is None else Recipe.from_data(plain)


def payload_of(event: Event, believed: Mapping[str, float]) -> dict[str, Any]:
    """The event as it is stored, with the posterior after it, which can be shown even when the model is gone."""
    return {**event.to_dict(), BELIEVED: dict(believed)}


def new_event(event: Event, believed: Mapping[str, float], council: Recipe | None = None) -> NewEvent:
    """An event for a step-through that is stored with all its events at once. council: of the first one."""
    payload = payload_of(event, believed)
    if council is not None:
        payload[COUNCIL] = council.to_data()
    return NewEvent(event.id, event.kind, payload)


def append_last_event(owner: str, step_through_id: str, expected_length: int, after: Patient) -> StoredEvent:
    """Store the newest event of the patient. Conflict if others were stored meanwhile."""
    event = after.events[-1]
    return services.get().store.step_throughs.append_event(
        owner,
        step_through_id,
        event.id,
        expected_length,
        event.kind,
        payload_of(event, summarise(after)),
        status="finished" if after.state.stopped else "running",
    )

"""A step-through as it is stored: the core's events, and the page's own settings between them in the same chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from app.host import services
from app.store import NewEvent, StepThrough, StoredCohort, StoredEvent
from l2m_core.acquire.stopping import Stopping
from l2m_core.memory import CohortMemory
from l2m_core.step_through.events import Event
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.trace import summarise

SETTINGS = "settings"  # kind of an event that says how to rank and when to stop; nothing is known by it
BELIEVED = "believed"  # part of an event's payload: the posterior that followed it, as it was shown
POLICIES = ("gain", "gain per cost", "learned")


@dataclass(frozen=True)
class Settings:
    """How to rank and when to advise stopping. policy None: the model's own default."""

    stopping: Stopping = field(default_factory=Stopping)
    policy: str | None = None

    def to_payload(self) -> dict[str, Any]:
        return {"stopping": {k: v for k, v in asdict(self.stopping).items() if v is not None}, "policy": self.policy}

    @classmethod
    def from_payload(cls, payload: dict[str, Any]) -> Settings:
        return cls(Stopping(**payload["stopping"]), payload["policy"])


@dataclass(frozen=True)
class RulesChange:
    """Settings were stored: after how many of the core's events, when, and what they are."""

    after: int
    at: datetime
    settings: Settings


@dataclass(frozen=True)
class Record:
    """events: the core's, in order. Of each of them, hashes: its hash in the chain; believed: the posterior that was
    shown after it, where that was stored; rules: the settings in force when the next event came. settings: those now;
    rules_set: each time that they were stored."""

    step_through: StepThrough
    cohort: StoredCohort
    events: tuple[Event, ...]
    hashes: tuple[str, ...]
    believed: tuple[Mapping[str, float] | None, ...]
    rules: tuple[Settings, ...]
    settings: Settings
    rules_set: tuple[RulesChange, ...]
    event_ids: frozenset[str]

    @property
    def id(self) -> str:
        return self.step_through.id

    @property
    def length(self) -> int:
        """Events of any kind: what the next one has to follow."""
        return self.step_through.length

    def patient(self, memory: CohortMemory, count: int | None = None) -> Patient:
        """What the first `count` events, or all, lead to; ranked by the present rules."""
        return Patient.replay(memory, self.events[:count], policy=self.settings.policy)

    def patients(self, memory: CohortMemory) -> tuple[Patient, ...]:
        """The patient after each event, ranked by the rules in force then."""
        return tuple(self.until(count).patient(memory) for count in range(1, len(self.events) + 1))

    def until(self, count: int) -> Record:
        """As it stood after its first `count` events, just before the next one."""
        return replace(
            self,
            events=self.events[:count],
            hashes=self.hashes[:count],
            believed=self.believed[:count],
            rules=self.rules[:count],
            settings=self.rules[count - 1],
            rules_set=tuple(change for change in self.rules_set if change.after <= count),
        )


def read(owner: str, step_through_id: str) -> Record:
    """As it is now; NotFound where it is not this owner's."""
    store = services.get().store
    step_through, stored = store.step_throughs.read_on(owner, step_through_id)
    return record_of(step_through, store.cohorts.get(owner, step_through.cohort_id), stored)


def record_of(step_through: StepThrough, cohort: StoredCohort, stored: Sequence[StoredEvent]) -> Record:
    core = [event for event in stored if event.kind != SETTINGS]
    payloads = [{**event.payload} for event in core]
    believed = tuple(payload.pop(BELIEVED, None) for payload in payloads)
    rules: list[Settings] = []
    rules_set: list[RulesChange] = []
    settings = Settings()
    for event in stored:
        if event.kind == SETTINGS:
            settings = Settings.from_payload(event.payload)
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
    )


def payload_of(event: Event, believed: Mapping[str, float]) -> dict[str, Any]:
    """The event as it is stored, with the posterior after it: the record then speaks even where the model is gone."""
    return {**event.to_dict(), BELIEVED: dict(believed)}


def new_event(event: Event, believed: Mapping[str, float]) -> NewEvent:
    """For a step-through that is stored with all its events at once."""
    return NewEvent(event.id, event.kind, payload_of(event, believed))


def append_last_event(owner: str, step_through_id: str, expected_length: int, after: Patient) -> StoredEvent:
    """Stores the newest event of the patient. Conflict where others were stored meanwhile."""
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

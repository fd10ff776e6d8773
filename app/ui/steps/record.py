"""A step-through as it is stored: the core's events, and the page's own settings between them in the same chain."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from app.store import NewEvent, StepThrough, StoredCohort, StoredEvent
from app.ui import services
from l2m_core.acquire.stopping import Stopping
from l2m_core.events import Event

SETTINGS = "settings"  # kind of an event that says how to rank and when to stop; nothing is known by it
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
class Record:
    """events: the core's, in order; hashes: of each of them in the chain; settings: those in force now."""

    step_through: StepThrough
    cohort: StoredCohort
    events: tuple[Event, ...]
    hashes: tuple[str, ...]
    settings: Settings
    event_ids: frozenset[str]

    @property
    def id(self) -> str:
        return self.step_through.id

    @property
    def length(self) -> int:
        """Events of any kind: what the next one has to follow."""
        return self.step_through.length


def read(owner: str, step_through_id: str) -> Record:
    """As it is now; NotFound where it is not this owner's."""
    store = services.get().store
    step_through, stored = store.step_throughs.read(owner, step_through_id)
    return record_of(step_through, store.cohorts.get(owner, step_through.cohort_id), stored)


def record_of(step_through: StepThrough, cohort: StoredCohort, stored: tuple[StoredEvent, ...]) -> Record:
    core = [event for event in stored if event.kind != SETTINGS]
    latest = next((event.payload for event in reversed(stored) if event.kind == SETTINGS), None)
    return Record(
        step_through,
        cohort,
        tuple(Event.from_dict(event.payload) for event in core),
        tuple(event.hash for event in core),
        Settings.from_payload(latest) if latest else Settings(),
        frozenset(event.event_id for event in stored),
    )


def new_event(event: Event) -> NewEvent:
    return NewEvent(event.id, event.kind, event.to_dict())

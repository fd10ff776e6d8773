"""What comes out of the store: plain frozen values, never rows that are still tied to a database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

JobState = Literal["queued", "running", "done", "failed", "cancelled", "crashed"]
StepThroughStatus = Literal["running", "finished"]


@dataclass(frozen=True)
class StoredCohort:
    id: str
    owner: str
    name: str
    version: int  # counts the contents stored under this name by this owner, from 1
    content_hash: str
    schema_yaml: str
    shared: bool
    size: int  # bytes as stored
    created_at: datetime
    deleted_at: datetime | None

    def is_usable_by(self, owner: str) -> bool:
        """Whether this owner may compute with its data. Who has a step-through on it still learns its name."""
        return self.deleted_at is None and (self.shared or self.owner == owner)


@dataclass(frozen=True)
class NewEvent:
    """An event that is still to be stored. The client makes its id, so that sending it twice stores it once."""

    event_id: str
    kind: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class StoredEvent:
    step_through_id: str
    sequence: int  # number of events before this one
    event_id: str
    kind: str
    payload: dict[str, Any]
    recorded_at: datetime
    previous_hash: str
    hash: str


@dataclass(frozen=True)
class StepThrough:
    id: str
    owner: str
    cohort_id: str
    cohort_hash: str
    model_fingerprint: str
    title: str
    status: StepThroughStatus
    length: int  # events so far
    version: int  # counts changes of any kind, for `update`
    head_hash: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class DeletedStepThrough:
    """What is left of one: enough to tell whether a file was exported from it."""

    id: str
    deleted_at: datetime
    link_hashes: tuple[str, ...]  # of its events, in order


@dataclass(frozen=True)
class ChainCheck:
    """Whether one chain is whole. `chain` is a step-through's id, or "audit"; `back_at` the first of its links that is dated
    before the one before it."""

    chain: str
    length: int
    head_hash: str
    broken_at: int | None
    reason: str
    back_at: int | None = None

    @property
    def intact(self) -> bool:
        return not self.reason


@dataclass(frozen=True)
class StoredEvidence:
    owner: str
    cohort_hash: str
    model_fingerprint: str
    settings: dict[str, Any]
    results: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True)
class Job:
    id: str
    owner: str
    kind: str
    config: dict[str, Any]
    state: JobState
    progress: float  # 0 to 1
    message: str
    log_path: str
    pid: int | None
    claim: str | None  # the running worker's proof that the job is still its own
    cancel_requested: bool
    attempts: int
    result: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    heartbeat_at: datetime | None
    finished_at: datetime | None

    @property
    def active(self) -> bool:
        return self.state in ("queued", "running")


@dataclass(frozen=True)
class StoredModel:
    owner: str
    name: str
    fingerprint: str
    folder: str
    card: str
    shared: bool
    created_at: datetime


@dataclass(frozen=True)
class Act:
    """One administrative act: who did what to what, and when."""

    sequence: int
    owner: str
    kind: str
    subject: str
    details: dict[str, Any]
    recorded_at: datetime
    hash: str

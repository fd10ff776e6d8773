"""The tables. Events and audit acts are append-only: triggers, made by the migrations, refuse changes and removal."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, MetaData, String, Text, TypeDecorator, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from . import times

ID, HASH, OWNER, NAME = String(36), String(64), String(200), String(200)


class UtcTime(TypeDecorator[datetime]):
    """A moment as fixed-width ISO text."""

    impl = String(times.WIDTH)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> str | None:
        return None if value is None else times.to_text(value)

    def process_result_value(self, value: str | None, dialect: Any) -> datetime | None:
        return None if value is None else times.from_text(value)


class Table(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class CohortRow(Table):
    """Stays after deletion, without its data: step-throughs still name what they were based on."""

    __tablename__ = "cohorts"
    __table_args__ = (UniqueConstraint("owner", "name", "version"), Index(None, "content_hash"))

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner: Mapped[str] = mapped_column(OWNER)
    name: Mapped[str] = mapped_column(NAME)
    version: Mapped[int]
    content_hash: Mapped[str] = mapped_column(HASH)
    schema_yaml: Mapped[str] = mapped_column(Text)
    shared: Mapped[bool]
    size: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(UtcTime)
    deleted_at: Mapped[datetime | None] = mapped_column(UtcTime)


class CohortDataRow(Table):
    """The table itself as Parquet. In the database rather than in a file beside it: it is stored, erased and backed up
    in the same transaction as everything that refers to it, and replicas that share a database share it too. A table
    of its own, so that listing cohorts never reads it."""

    __tablename__ = "cohort_data"

    cohort_id: Mapped[str] = mapped_column(ID, ForeignKey("cohorts.id"), primary_key=True)
    sha256: Mapped[str] = mapped_column(HASH)
    parquet: Mapped[bytes] = mapped_column(LargeBinary)


class StepThroughRow(Table):
    """The head of one chain of events. Locked while an event is appended.

    Stays after deletion, without title and events: `link_hashes`, one line for each event, then tells whether a head that
    is known from elsewhere was this chain's. They tell nothing of the events: each covers a random id, which is gone too.
    """

    __tablename__ = "step_throughs"
    __table_args__ = (Index(None, "owner", "updated_at"),)

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner: Mapped[str] = mapped_column(OWNER)
    cohort_id: Mapped[str] = mapped_column(ID, ForeignKey("cohorts.id"))
    cohort_hash: Mapped[str] = mapped_column(HASH)
    model_fingerprint: Mapped[str] = mapped_column(NAME)
    title: Mapped[str] = mapped_column(NAME)
    status: Mapped[str] = mapped_column(String(20))
    length: Mapped[int]
    version: Mapped[int] = mapped_column()
    head_hash: Mapped[str] = mapped_column(HASH)
    created_at: Mapped[datetime] = mapped_column(UtcTime)
    updated_at: Mapped[datetime] = mapped_column(UtcTime)
    deleted_at: Mapped[datetime | None] = mapped_column(UtcTime)
    link_hashes: Mapped[str | None] = mapped_column(Text)

    # An UPDATE whose version is no longer the one that was read changes nothing and is reported as a conflict.
    __mapper_args__ = {"version_id_col": version}


class LinkColumns:
    """A link's columns, all as they are hashed (see chain.py)."""

    sequence: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    event_id: Mapped[str] = mapped_column(ID)
    kind: Mapped[str] = mapped_column(String(64))
    recorded_at: Mapped[str] = mapped_column(String(times.WIDTH))
    payload: Mapped[str] = mapped_column(Text)
    previous_hash: Mapped[str] = mapped_column(HASH)
    hash: Mapped[str] = mapped_column(HASH)


class EventRow(LinkColumns, Table):
    """Event ids are unique within a step-through: a trace can be imported beside its original, and nobody can learn or
    block the ids of others."""

    __tablename__ = "events"
    __table_args__ = (UniqueConstraint("step_through_id", "event_id"),)

    step_through_id: Mapped[str] = mapped_column(ID, ForeignKey("step_throughs.id"), primary_key=True, sort_order=-1)


class AuditRow(LinkColumns, Table):
    """Administrative acts, in one chain for the whole installation."""

    __tablename__ = "audit"


class EvidenceRow(Table):
    __tablename__ = "evidence"
    __table_args__ = (
        UniqueConstraint("owner", "cohort_hash", "model_fingerprint", "settings_hash"),
        Index(None, "cohort_hash"),
    )

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner: Mapped[str] = mapped_column(OWNER)
    cohort_hash: Mapped[str] = mapped_column(HASH)
    model_fingerprint: Mapped[str] = mapped_column(NAME)
    settings_hash: Mapped[str] = mapped_column(HASH)
    settings: Mapped[str] = mapped_column(Text)
    results: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcTime)


class JobRow(Table):
    __tablename__ = "jobs"
    __table_args__ = (Index(None, "owner", "created_at"), Index(None, "state"))

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner: Mapped[str] = mapped_column(OWNER)
    kind: Mapped[str] = mapped_column(String(64))
    config: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(20))
    progress: Mapped[float]
    message: Mapped[str] = mapped_column(Text)
    log_path: Mapped[str] = mapped_column(Text)
    pid: Mapped[int | None]
    process: Mapped[str | None] = mapped_column(Text)
    claim: Mapped[str | None] = mapped_column(ID)
    cancel_requested: Mapped[bool]
    attempts: Mapped[int]
    result: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcTime)
    queued_at: Mapped[datetime] = mapped_column(UtcTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcTime)
    heartbeat_at: Mapped[datetime | None] = mapped_column(UtcTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcTime)


class ModelRow(Table):
    __tablename__ = "models"
    __table_args__ = (UniqueConstraint("owner", "fingerprint"),)

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner: Mapped[str] = mapped_column(OWNER)
    name: Mapped[str] = mapped_column(NAME)
    fingerprint: Mapped[str] = mapped_column(NAME)
    folder: Mapped[str] = mapped_column(Text)
    card: Mapped[str] = mapped_column(Text)
    shared: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(UtcTime)

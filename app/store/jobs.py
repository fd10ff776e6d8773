"""Background jobs: a row that the page writes, a worker claims, and everyone reads.

    queued ─► running ─► done | failed | cancelled | crashed ─► (requeue) ─► queued

A worker proves by its claim that the job is still its own; a worker that was given up for dead cannot write any more.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any, Literal, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from . import processes, times
from .chain import canonical_json
from .database import Database
from .errors import Conflict, NotFound, StoreInputError
from .inputs import new_id, require_text
from .records import Job, JobState
from .tables import JobRow

SECONDS_TO_START = 60.0
SECONDS_WITHOUT_HEARTBEAT = 60.0


class Jobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    # What the page does, as an owner.

    def add(self, owner: str, kind: str, config: dict[str, Any], log_path: str = "") -> Job:
        require_text("The owner", owner)
        require_text("The job's kind", kind, 64)
        require_text("The log's path", log_path, 4000, empty=True)
        moment = times.now()
        with self._database.writing() as session:
            row = JobRow(
                id=new_id(),
                owner=owner,
                kind=kind,
                config=canonical_json(config),
                state="queued",
                progress=0.0,
                message="",
                log_path=log_path,
                cancel_requested=False,
                attempts=0,
                created_at=moment,
                queued_at=moment,
            )
            session.add(row)
            session.flush()
            return _job(row)

    def get(self, owner: str, job_id: str) -> Job:
        with self._database.reading() as session:
            return _job(_own(session, owner, job_id))

    def list(self, owner: str, kind: str | None = None, limit: int = 100) -> tuple[Job, ...]:
        query = select(JobRow).where(JobRow.owner == owner)
        if kind is not None:
            query = query.where(JobRow.kind == kind)
        query = query.order_by(JobRow.created_at.desc(), JobRow.id).limit(limit)
        with self._database.reading() as session:
            return tuple(_job(row) for row in session.scalars(query))

    def set_log_path(self, owner: str, job_id: str, log_path: str) -> Job:
        with self._database.writing() as session:
            row = _own(session, owner, job_id, lock=True)
            row.log_path = require_text("The log's path", log_path, 4000, empty=True)
            return _job(row)

    def request_cancel(self, owner: str, job_id: str) -> Job:
        """Ends a queued job; a running one learns it at its next heartbeat."""
        with self._database.writing() as session:
            row = _own(session, owner, job_id, lock=True)
            if row.state == "queued":
                _end(row, "cancelled", "Cancelled before it started.")
            elif row.state == "running":
                row.cancel_requested = True
            return _job(row)

    def requeue(self, owner: str, job_id: str) -> Job:
        """Let a job that ended run again, to resume where its files say it stopped."""
        with self._database.writing() as session:
            row = _own(session, owner, job_id, lock=True)
            if row.state in ("queued", "running"):
                raise Conflict("This job is waiting or running already.")
            row.state, row.message, row.queued_at = "queued", "", times.now()
            row.cancel_requested, row.claim, row.pid, row.process = False, None, None, None
            row.result, row.finished_at, row.heartbeat_at = None, None, None
            return _job(row)

    # What the worker does, with its claim.

    def claim(self, job_id: str, pid: int | None = None) -> Job | None:
        """Take a queued job for this process. None if it was taken or cancelled first."""
        pid = os.getpid() if pid is None else pid
        with self._database.writing() as session:
            row = session.scalars(select(JobRow).where(JobRow.id == job_id).with_for_update()).one_or_none()
            if row is None or row.state != "queued":
                return None
            moment = times.now()
            row.state, row.claim, row.attempts = "running", new_id(), row.attempts + 1
            row.pid, row.process = pid, processes.identity(pid)
            row.started_at, row.heartbeat_at = moment, moment
            return _job(row)

    def heartbeat(self, job_id: str, claim: str, progress: float | None = None, message: str | None = None) -> Job:
        """Say that the job is alive and how far it is. Look at `cancel_requested` in the answer."""
        with self._database.writing() as session:
            row = _claimed(session, job_id, claim)
            row.heartbeat_at = times.now()
            if progress is not None:
                row.progress = _checked_progress(progress)
            if message is not None:
                row.message = require_text("The job's message", message, 10_000, empty=True)
            return _job(row)

    def finish(
        self,
        job_id: str,
        claim: str,
        state: Literal["done", "failed", "cancelled"],
        message: str = "",
        result: dict[str, Any] | None = None,
    ) -> Job:
        if state not in ("done", "failed", "cancelled"):
            raise ValueError("A job finishes as done, failed or cancelled.")
        require_text("The job's message", message, 10_000, empty=True)
        with self._database.writing() as session:
            row = _claimed(session, job_id, claim)
            _end(row, state, message)
            row.result = None if result is None else canonical_json(result)
            if state == "done":
                row.progress = 1.0
            return _job(row)

    # What anyone may do, at any time.

    def of_cohort(self, cohort_id: str) -> tuple[Job, ...]:
        """Jobs of all owners that work with a cohort, or did."""
        query = select(JobRow).where(JobRow.config.contains(cohort_id, autoescape=True))
        with self._database.reading() as session:
            found = [_job(row) for row in session.scalars(query)]
        return tuple(job for job in found if job.config.get("cohort") == cohort_id)

    def active(self) -> tuple[Job, ...]:
        """Jobs of all owners that wait or run, in the order in which they were queued."""
        query = select(JobRow).where(JobRow.state.in_(("queued", "running"))).order_by(JobRow.queued_at, JobRow.id)
        with self._database.reading() as session:
            return tuple(_job(row) for row in session.scalars(query))

    def sweep(
        self, seconds_to_start: float = SECONDS_TO_START, seconds_without_heartbeat: float = SECONDS_WITHOUT_HEARTBEAT
    ) -> tuple[Job, ...]:
        """Mark as crashed what will never go on by itself; returns those jobs.

        On this machine a process is gone or it is not: a busy one that misses heartbeats is left alone, since a second
        worker beside it would do harm. Workers elsewhere are judged by their heartbeats.
        """
        moment, crashed = times.now(), []
        with self._database.writing() as session:
            active = select(JobRow).where(JobRow.state.in_(("queued", "running"))).with_for_update()
            for row in session.scalars(active):
                reason = _reason_to_give_up(
                    row,
                    never_started=row.queued_at < moment - timedelta(seconds=seconds_to_start),
                    silent=(row.heartbeat_at or moment) < moment - timedelta(seconds=seconds_without_heartbeat),
                )
                if reason:
                    _end(row, "crashed", reason)
                    crashed.append(row)
            return tuple(_job(row) for row in crashed)


def _reason_to_give_up(row: JobRow, never_started: bool, silent: bool) -> str:
    if row.state == "queued":
        return "No worker started it." if never_started else ""
    alive = processes.is_alive(row.process or "")
    if alive is False:
        return "Its process ended without a word; its log may say why."
    if alive is None and silent:
        return "It has not been heard of for too long."
    return ""


def _own(session: Session, owner: str, job_id: str, lock: bool = False) -> JobRow:
    query = select(JobRow).where(JobRow.id == job_id, JobRow.owner == owner)
    row = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise NotFound("There is no such job of yours.")
    return row


def _claimed(session: Session, job_id: str, claim: str) -> JobRow:
    row = session.scalars(select(JobRow).where(JobRow.id == job_id).with_for_update()).one_or_none()
    if row is None or row.state != "running" or row.claim != claim:
        raise Conflict("This job is no longer this worker's: it was ended, given up or taken over. Stop working on it.")
    return row


def _end(row: JobRow, state: JobState, message: str) -> None:
    row.state, row.message, row.finished_at, row.claim = state, message, times.now(), None


def _checked_progress(progress: float) -> float:
    if not 0.0 <= progress <= 1.0:
        raise StoreInputError("A job's progress lies between 0 and 1.")
    return float(progress)


def _job(row: JobRow) -> Job:
    return Job(
        id=row.id,
        owner=row.owner,
        kind=row.kind,
        config=json.loads(row.config),
        state=cast(JobState, row.state),
        progress=row.progress,
        message=row.message,
        log_path=row.log_path,
        pid=row.pid,
        claim=row.claim,
        cancel_requested=row.cancel_requested,
        attempts=row.attempts,
        result=None if row.result is None else json.loads(row.result),
        created_at=row.created_at,
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        finished_at=row.finished_at,
    )

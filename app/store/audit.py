"""The audit trail of administrative acts: one hash chain, written in the same transaction as the act itself."""

from __future__ import annotations

import json
import time
from hashlib import sha256
from itertools import islice
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.cache import BoundedCache

from . import chain, times
from .database import Database, lock_name
from .inputs import new_id, require_text
from .links import next_link
from .records import Act, NewEvent
from .tables import AuditRow

CHAIN = "audit"
ORIGIN = chain.origin(chain=CHAIN)
MOST_TOLD = 10_000  # acts remembered, so that they are not recorded again within the hour


def record_act(session: Session, owner: str, kind: str, subject: str, **details: Any) -> None:
    """Call it last in a transaction: everyone who records an act waits here for the others."""
    session.flush()
    lock_name(session, CHAIN)
    event = NewEvent(new_id(), kind, {"owner": owner, "subject": subject, "details": details})
    session.add(next_link(AuditRow, CHAIN, audit_head(session), event))


def digest(subject: str, text: str) -> str:
    """What an act keeps of a text about its subject: enough to notice a change, and nothing to read."""
    return sha256(chain.canonical_json([subject, text]).encode()).hexdigest()


def audit_head(session: Session) -> chain.Head:
    newest = session.execute(
        select(AuditRow.sequence, AuditRow.hash).order_by(AuditRow.sequence.desc()).limit(1)
    ).one_or_none()
    return chain.Head(0, ORIGIN) if newest is None else chain.Head(newest.sequence + 1, newest.hash)


class Audit:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._told = BoundedCache(MOST_TOLD)

    def record(self, owner: str, kind: str, subject: str, **details: Any) -> None:
        """An act that changes nothing else in the store. It is on disk when this returns."""
        require_text("The owner", owner)
        with self._database.writing() as session:
            record_act(session, owner, kind, subject, **details)

    def record_once_an_hour(self, owner: str, kind: str, subject: str) -> None:
        """The same for what happens again and again, such as reading: once by the clock's hour, in each process."""
        hour = int(time.time() // 3600)
        self._told.get((owner, kind, subject, hour), lambda: self.record(owner, kind, subject))

    def list(self, owner: str, limit: int = 1000) -> tuple[Act, ...]:
        """The owner's acts, newest first."""
        newest_first = select(AuditRow).order_by(AuditRow.sequence.desc()).execution_options(yield_per=200)
        with self._database.reading() as session:
            acts = (_act(row) for row in session.scalars(newest_first))
            return tuple(islice((act for act in acts if act.owner == owner), limit))


def _act(row: AuditRow) -> Act:
    payload = json.loads(row.payload)
    return Act(
        sequence=row.sequence,
        owner=payload["owner"],
        kind=row.kind,
        subject=payload["subject"],
        details=payload["details"],
        recorded_at=times.from_text(row.recorded_at),
        hash=row.hash,
    )

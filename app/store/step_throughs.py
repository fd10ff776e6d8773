"""Step-throughs: append-only, hash-chained events. What an event means is the core's business; here it is JSON.

An event is never changed or removed by itself. A whole step-through can be deleted: what it held is erased, and its row
stays with the hash of each event, so that deleting one neither breaks a chain nor hides what was done to it.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.orm import Session

from . import chain, times
from .audit import CHAIN, audit_head, digest, record_act
from .cohorts import erase_unread_schemas, usable_cohort
from .database import Database, lock_name
from .errors import Conflict, NotFound
from .inputs import new_id, require_text, require_uuid
from .links import checked, next_link, select_links
from .records import ChainCheck, DeletedStepThrough, NewEvent, StepThrough, StepThroughStatus, StoredEvent
from .signed_heads import Keeper
from .tables import EventRow, StepThroughRow

STATUSES = ("running", "finished")
MOST_KEPT = 500  # step-throughs whose events are kept in memory


def chain_origin(step_through_id: str, cohort_hash: str, model_fingerprint: str) -> str:
    """What a step-through's chain starts from, so that its events hold for this cohort and this model only."""
    return chain.origin(step_through=step_through_id, cohort=cohort_hash, model=model_fingerprint)


class StepThroughs:
    def __init__(self, database: Database, keeper: Keeper) -> None:
        self._database, self._keeper = database, keeper
        self._lately = _Lately()

    def create(
        self,
        owner: str,
        cohort_id: str,
        model_fingerprint: str,
        title: str = "",
        step_through_id: str | None = None,
        events: Sequence[NewEvent] = (),
    ) -> StepThrough:
        """Begin a step-through, empty or with all the events of an imported trace.

        Pass a `step_through_id` made once per intention (a UUID) and a double click begins only one.
        """
        require_text("The owner", owner)
        require_text("The model's fingerprint", model_fingerprint)
        require_text("The title", title, empty=True)
        events = [checked(event) for event in events]
        step_through_id = require_uuid("The step-through's id", step_through_id or new_id())
        with self._database.writing() as session:
            lock_name(session, f"step-through {step_through_id}")
            cohort = usable_cohort(session, owner, cohort_id, held=True)
            known = session.get(StepThroughRow, step_through_id)
            if known is not None:
                _require_same_beginning(known, owner, cohort_id, model_fingerprint)
                return _step_through(known)
            moment = times.now()
            row = StepThroughRow(
                id=step_through_id,
                owner=owner,
                cohort_id=cohort.id,
                cohort_hash=cohort.content_hash,
                model_fingerprint=model_fingerprint,
                title=title,
                status="running",
                length=0,
                head_hash=chain_origin(step_through_id, cohort.content_hash, model_fingerprint),
                created_at=moment,
                updated_at=moment,
            )
            session.add(row)
            session.flush()
            for event in events:
                _append(session, row, event)
            told = {"cohort": cohort.id, "events": len(events), "title": digest(row.id, title)}
            record_act(session, owner, "step-through created", row.id, **told)
            session.flush()
            return _step_through(row)

    def get(self, owner: str, step_through_id: str) -> StepThrough:
        with self._database.reading() as session:
            return _step_through(_own(session, owner, step_through_id))

    def list(
        self,
        owner: str,
        search: str = "",
        status: StepThroughStatus | None = None,
        limit: int = 200,
        cohorts: Collection[str] | None = None,
    ) -> tuple[StepThrough, ...]:
        """The owner's step-throughs whose title contains `search` (in any case), latest activity first; of all cohorts, or of
        those with these ids."""
        query = select(StepThroughRow).where(StepThroughRow.owner == owner, StepThroughRow.deleted_at.is_(None))
        if search:
            query = query.where(StepThroughRow.title.icontains(search, autoescape=True))
        if status is not None:
            query = query.where(StepThroughRow.status == status)
        if cohorts is not None:
            query = query.where(StepThroughRow.cohort_id.in_(cohorts))
        query = query.order_by(StepThroughRow.updated_at.desc(), StepThroughRow.id).limit(limit)
        with self._database.reading() as session:
            return tuple(_step_through(row) for row in session.scalars(query))

    def latest_of_each_cohort(self, limit: int) -> tuple[StepThrough, ...]:
        """For the server itself, whoever owns them: of each cohort and model the step-through with the latest activity,
        of at most `limit`, the latest first."""
        position = func.row_number().over(
            partition_by=(StepThroughRow.cohort_hash, StepThroughRow.model_fingerprint),
            order_by=(StepThroughRow.updated_at.desc(), StepThroughRow.id),
        )
        first = (
            select(StepThroughRow.id, position.label("position")).where(StepThroughRow.deleted_at.is_(None)).subquery()
        )
        query = select(StepThroughRow).join(first, StepThroughRow.id == first.c.id).where(first.c.position == 1)
        query = query.order_by(StepThroughRow.updated_at.desc(), StepThroughRow.id).limit(limit)
        with self._database.reading() as session:
            return tuple(_step_through(row) for row in session.scalars(query))

    def read(self, owner: str, step_through_id: str) -> tuple[StepThrough, tuple[StoredEvent, ...]]:
        """A step-through and all its events, as they were at one moment."""
        with self._database.reading() as session:
            row = _own(session, owner, step_through_id)
            return _step_through(row), _events(session, row, 0)

    def read_on(self, owner: str, step_through_id: str) -> tuple[StepThrough, tuple[StoredEvent, ...]]:
        """The same for one that is being worked on: events that were read lately are not read again. What is to be
        checked must be read whole: someone may have changed it in the database."""
        with self._database.reading() as session:
            row = _own(session, owner, step_through_id)
            return _step_through(row), self._lately.events(session, row)

    def events(self, owner: str, step_through_id: str) -> tuple[StoredEvent, ...]:
        return self.read(owner, step_through_id)[1]

    def append_event(
        self,
        owner: str,
        step_through_id: str,
        event_id: str,
        expected_length: int,
        kind: str,
        payload: dict[str, Any],
        status: StepThroughStatus | None = None,
    ) -> StoredEvent:
        """Store one event durably, and the step-through's new status with it if one is given.

        The same event sent again returns the stored one. `expected_length` is the number of events the sender has
        seen: if there are more, the sender decided on an old state and gets a Conflict.
        """
        event = checked(NewEvent(event_id, kind, payload))
        with self._database.writing() as session:
            row = _own(session, owner, step_through_id, lock=True)
            known = session.scalars(_KNOWN_EVENT, {"step_through": row.id, "event": event.event_id}).one_or_none()
            if known is not None:
                if (known.kind, known.payload) != (event.kind, chain.canonical_json(event.payload)):
                    raise Conflict("This event id is in use for another event. Make a new one.", row.length)
                return _event(known)
            if expected_length != row.length:
                raise Conflict(
                    f"This step-through has {row.length} events by now, not {expected_length}: it went on elsewhere, "
                    "for example in another tab. Load it again, then decide.",
                    row.length,
                )
            stored = _append(session, row, event)
            if status is not None:
                row.status = _checked_status(status)
            heads, kept = _heads_at_end(session, row, status), _event(stored)
        self._keeper.keep(heads)
        return kept

    def update(
        self,
        owner: str,
        step_through_id: str,
        expected_version: int,
        title: str | None = None,
        status: StepThroughStatus | None = None,
    ) -> StepThrough:
        """Change the title or the status, unless anything changed since `expected_version` was read."""
        with self._database.writing() as session:
            row = _own(session, owner, step_through_id, lock=True)
            if row.version != expected_version:
                raise Conflict("This step-through was changed elsewhere. Load it again, then decide.", row.length)
            if title is not None:
                row.title = require_text("The title", title, empty=True)
            if status is not None:
                row.status = _checked_status(status)
            if title is not None:
                record_act(session, owner, "step-through renamed", row.id, title=digest(row.id, title))
            session.flush()
            heads, changed = _heads_at_end(session, row, status), _step_through(row)
        self._keeper.keep(heads)
        return changed

    def delete(self, owner: str, step_through_ids: Collection[str]) -> tuple[DeletedStepThrough, ...]:
        """Erase the events and titles of all of them, or of none. Those that were deleted already are passed.

        The audit trail tells who deleted what, and when; and of a chain that was not whole it tells that for good.
        """
        with self._database.writing() as session:
            rows = [_own(session, owner, name, lock=True, alive=False) for name in sorted(set(step_through_ids))]
            gone = [_erase(session, row) for row in rows if row.deleted_at is None]
            session.flush()
            erase_unread_schemas(session, {row.cohort_id for row in rows})
            heads = {row.id: chain.Head(row.length, row.head_hash) for row in rows if row.deleted_at is not None}
            heads[CHAIN] = audit_head(session)
        if not gone:
            return ()
        self.forget(one.id for one in gone)
        self._keeper.keep(heads)
        self._database.empty_journal()
        return tuple(gone)

    def deleted(self, owner: str, step_through_id: str) -> DeletedStepThrough | None:
        """What is left of one that its owner deleted; None where there is none, or it is still there."""
        with self._database.reading() as session:
            try:
                row = _own(session, owner, step_through_id, alive=False)
            except NotFound:
                return None
            return None if row.deleted_at is None else _deleted(row)

    def deleted_since(self, moment: datetime) -> tuple[DeletedStepThrough, ...]:
        """For the server itself, whoever owned them."""
        with self._database.reading() as session:
            rows = session.scalars(select(StepThroughRow).where(StepThroughRow.deleted_at >= moment))
            return tuple(map(_deleted, rows))

    def forget(self, step_through_ids: Iterable[str]) -> None:
        """Drop from memory what was read of them."""
        self._lately.drop(step_through_ids)

    def verify(self, owner: str, step_through_id: str) -> ChainCheck:
        """Recompute the whole chain; the verdict names the first broken link."""
        with self._database.reading() as session:
            row = _own(session, owner, step_through_id)
            links = session.connection().execute(select_links(EventRow).where(EventRow.step_through_id == row.id))
            return verify_chain(row, links)


class _Lately:
    """The events of the step-throughs that were read lately: events never change, so only those that follow are read.

    What is kept counts only where it ends in the hash that the next event, or the step-through itself, goes on from.
    """

    def __init__(self) -> None:
        self._events: OrderedDict[str, tuple[StoredEvent, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def events(self, session: Session, row: StepThroughRow) -> tuple[StoredEvent, ...]:
        with self._lock:
            known = self._events.get(row.id, ())
        found = known + _events(session, row, len(known))
        if known and (len(found) != row.length or not _follow_on(found, len(known), row.head_hash)):
            found = _events(session, row, 0)
        with self._lock:
            self._events[row.id] = found
            self._events.move_to_end(row.id)
            if len(self._events) > MOST_KEPT:
                self._events.popitem(last=False)
        return found

    def drop(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                self._events.pop(name, None)


def _events(session: Session, row: StepThroughRow, first: int) -> tuple[StoredEvent, ...]:
    """From the `first`-th on."""
    if 0 < first == row.length:
        return ()
    return tuple(map(_event, session.scalars(_EVENTS_FROM, {"step_through": row.id, "first": first})))


def _follow_on(events: tuple[StoredEvent, ...], known: int, head: str) -> bool:
    """Whether the events from the `known`-th on go on from those before, and the last one is the head."""
    return events[-1].hash == head and (known == len(events) or events[known].previous_hash == events[known - 1].hash)


def verify_chain(row: Any, links: Iterable[Any], anchors: Sequence[chain.Head] = ()) -> ChainCheck:
    """row: anything with the columns of a step-through; links: its events with the fields of `chain.Link`, in order."""
    start = chain_origin(row.id, row.cohort_hash, row.model_fingerprint)
    result = chain.walk(row.id, start, links, (chain.Head(row.length, row.head_hash), *anchors))
    broken_at, reason = result.broken_at, result.reason
    if broken_at is None and result.length > row.length:
        broken_at, reason = row.length, f"link {row.length} lies beyond the recorded end"
    return ChainCheck(row.id, result.length, result.head, broken_at, reason, result.back_at)


def verify_deleted(row: Any, anchors: Sequence[chain.Head] = ()) -> ChainCheck:
    """The same for a step-through that was deleted: whether its head, and all that is known from elsewhere, is among the
    hashes that were kept of its events. They are no events any more, so none is counted."""
    hashes = (chain_origin(row.id, row.cohort_hash, row.model_fingerprint), *_lines(row.link_hashes))
    for head in (chain.Head(row.length, row.head_hash), *anchors):
        if not 0 <= head.length < len(hashes):
            return ChainCheck(row.id, 0, row.head_hash, len(hashes) - 1, f"link {len(hashes) - 1} is missing")
        if hashes[head.length] != head.hash:
            broken_at = max(head.length - 1, 0)
            return ChainCheck(
                row.id, 0, row.head_hash, broken_at, f"link {broken_at} is not the one known from elsewhere"
            )
    reason = "" if len(hashes) == row.length + 1 else f"link {row.length} lies beyond the recorded end"
    return ChainCheck(row.id, 0, row.head_hash, row.length if reason else None, reason)


def _erase(session: Session, row: StepThroughRow) -> DeletedStepThrough:
    links = session.connection().execute(select_links(EventRow).where(EventRow.step_through_id == row.id)).all()
    verdict = verify_chain(row, links)
    row.title, row.deleted_at, row.link_hashes = "", times.now(), "\n".join(link.hash for link in links)
    session.flush()  # the trigger lets events of deleted ones go
    session.execute(delete(EventRow).where(EventRow.step_through_id == row.id))
    told = {"length": row.length, "head": row.head_hash, "links": digest(row.id, row.link_hashes)}
    record_act(session, row.owner, "step-through deleted", row.id, broken=verdict.reason, **told)
    return _deleted(row)


def _lines(text: str | None) -> tuple[str, ...]:
    return tuple(text.split("\n")) if text else ()


# Made once: to put a statement together takes longer than to run it.
_OWN = select(StepThroughRow).where(
    StepThroughRow.id == bindparam("step_through"), StepThroughRow.owner == bindparam("owner")
)
_OWN_LOCKED = _OWN.with_for_update()
_EVENTS_FROM = (
    select(EventRow)
    .where(EventRow.step_through_id == bindparam("step_through"), EventRow.sequence >= bindparam("first"))
    .order_by(EventRow.sequence)
)
_KNOWN_EVENT = select(EventRow).where(
    EventRow.step_through_id == bindparam("step_through"), EventRow.event_id == bindparam("event")
)


def _require_same_beginning(known: StepThroughRow, owner: str, cohort_id: str, model_fingerprint: str) -> None:
    """Whether a step-through that is there already may be what a second press asks for."""
    if known.deleted_at is not None:
        raise Conflict("This id is in use for a step-through that was deleted. Make a new one.")
    if (owner, cohort_id, model_fingerprint) != (known.owner, known.cohort_id, known.model_fingerprint):
        raise Conflict("This id is in use for another step-through. Make a new one.")


def _own(session: Session, owner: str, step_through_id: str, lock: bool = False, alive: bool = True) -> StepThroughRow:
    """alive: refuse one that was deleted."""
    values = {"step_through": step_through_id, "owner": owner}
    row = session.scalars(_OWN_LOCKED if lock else _OWN, values).one_or_none()
    if row is None:
        raise NotFound("There is no such step-through of yours.")
    if alive and row.deleted_at is not None:
        raise NotFound(
            f"You deleted this step-through on {row.deleted_at:%d %b %Y, %H:%M} UTC, so nothing more can be recorded in it. "
            "Begin a new one."
        )
    return row


def _append(session: Session, row: StepThroughRow, event: NewEvent) -> EventRow:
    stored = next_link(EventRow, row.id, chain.Head(row.length, row.head_hash), event, step_through_id=row.id)
    session.add(stored)
    row.length, row.head_hash, row.updated_at = row.length + 1, stored.hash, times.from_text(stored.recorded_at)
    return stored


def _heads_at_end(session: Session, row: StepThroughRow, status: str | None) -> dict[str, chain.Head]:
    """What is signed when a step-through is finished, and nothing before: its head, and that of all acts until now."""
    if status != "finished":
        return {}
    return {row.id: chain.Head(row.length, row.head_hash), CHAIN: audit_head(session)}


def _checked_status(status: str) -> str:
    if status not in STATUSES:
        raise ValueError(f"A step-through's status is one of {', '.join(STATUSES)}.")
    return status


def _event(row: EventRow) -> StoredEvent:
    return StoredEvent(
        step_through_id=row.step_through_id,
        sequence=row.sequence,
        event_id=row.event_id,
        kind=row.kind,
        payload=json.loads(row.payload),
        recorded_at=times.from_text(row.recorded_at),
        previous_hash=row.previous_hash,
        hash=row.hash,
    )


def _deleted(row: StepThroughRow) -> DeletedStepThrough:
    assert row.deleted_at is not None
    return DeletedStepThrough(row.id, row.deleted_at, _lines(row.link_hashes))


def _step_through(row: StepThroughRow) -> StepThrough:
    return StepThrough(
        id=row.id,
        owner=row.owner,
        cohort_id=row.cohort_id,
        cohort_hash=row.cohort_hash,
        model_fingerprint=row.model_fingerprint,
        title=row.title,
        status=cast(StepThroughStatus, row.status),
        length=row.length,
        version=row.version,
        head_hash=row.head_hash,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )

"""Verify every chain and all that lies beside them, and keep the heads that give away what was cut off at the end.

Events are read a few thousand at a time and cohorts' tables one at a time, so that a large store fits into the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from . import chain, faults
from .audit import CHAIN, ORIGIN, audit_head
from .links import select_links
from .records import ChainCheck
from .signed_heads import Heads, KnownHeads
from .step_throughs import verify_chain, verify_deleted
from .tables import AuditRow, EventRow, StepThroughRow

# What a chain cannot be walked without.
HASHED = ("id", "cohort_hash", "model_fingerprint", "length", "head_hash", "link_hashes")


@dataclass(frozen=True)
class Verification:
    """What was found: `broken` holds one check for each chain that is not whole, `faults` what else is wrong, in words.

    deleted: how many of the step-throughs their owners deleted; of these the hashes of their events are held.
    notes: what is no fault by itself, but should be known: clocks that were put back, and the like.
    anchored: how many chains were held against a head kept elsewhere.
    """

    step_throughs: int
    events: int
    acts: int
    broken: tuple[ChainCheck, ...]
    faults: tuple[str, ...] = ()
    anchored: int = 0
    notes: tuple[str, ...] = ()
    deleted: int = 0

    @property
    def intact(self) -> bool:
        return not self.broken and not self.faults


def verify_everything(session: Session, known: KnownHeads | None = None) -> Verification:
    """The file and its triggers, then all that is stored.

    known: heads from elsewhere; every chain must still pass through its own.
    """
    found = faults.damage(session) + faults.missing_triggers(session)
    try:
        records = verify_records(session, known)
    except SQLAlchemyError:
        if not found:
            raise
        return Verification(0, 0, 0, (), (*found, "what is stored cannot be read to its end"))
    return replace(records, faults=(*found, *records.faults))


def verify_records(session: Session, known: KnownHeads | None = None) -> Verification:
    """All chains; each row by itself, against the data it speaks of, and against the acts."""
    try:
        return _verify_records(session, known or KnownHeads())
    except OperationalError as error:
        if not faults.is_undecodable(error):
            raise
    with faults.any_text(session):
        return _verify_records(session, known or KnownHeads())


def _verify_records(session: Session, known: KnownHeads) -> Verification:
    heads = known.heads
    malformed = faults.malformed(session)
    rows = {row.id: row for row in session.execute(faults.as_stored(StepThroughRow))}
    unreadable = {row.id for row in rows.values() if not faults.is_readable(row, StepThroughRow, HASHED)}
    checks = [ChainCheck(str(name), 0, "", 0, "its own row cannot be read") for name in unreadable]
    orphans = []
    by_chain = groupby(_all_links(session), key=itemgetter(0))
    walked = set()
    for step_through_id, links in by_chain:
        row = rows.get(step_through_id)
        if step_through_id in unreadable:
            walked.add(step_through_id)
            continue
        if row is None:
            orphans.append(_missing(step_through_id))
            continue
        walked.add(step_through_id)
        if row.deleted_at is not None:
            checks.append(ChainCheck(row.id, 0, "", 0, "its events are there, although it was deleted"))
            continue
        checks.append(verify_chain(row, (link[1:] for link in links), _anchors(heads, row.id)))
    checks += [_of_none(row, _anchors(heads, row.id)) for row in rows.values() if row.id not in walked | unreadable]
    audit = _verify_audit(session, heads)
    told = faults.read_acts(session)
    removed = (set(told.step_throughs) | set(heads)) - {CHAIN} - set(rows)
    broken = [check for check in checks if not check.intact]
    broken += orphans + [_missing(step_through_id) for step_through_id in sorted(removed)]
    broken += [] if audit.intact else [audit]
    events = sum(check.length for check in checks)
    unsigned = (_unsigned(row) for row in rows.values() if _must_be_signed(row) and row.id not in heads)
    others = (*malformed, *faults.contradictions(session, told), *known.faults, *(unsigned if known.are_all else ()))
    anchored = len(heads.keys() & {*rows, CHAIN})
    notes = (*known.notes, *(_dated_back(check) for check in (*checks, audit) if check.back_at is not None))
    deleted = sum(row.deleted_at is not None for row in rows.values())
    return Verification(len(rows), events, audit.length, tuple(broken), others, anchored, notes, deleted)


def heads_of(session: Session) -> dict[str, chain.Head]:
    """The heads of all chains, as their own rows tell them."""
    columns = select(StepThroughRow.id, StepThroughRow.length, StepThroughRow.head_hash).order_by(StepThroughRow.id)
    heads = {row.id: chain.Head(row.length, row.head_hash) for row in session.execute(columns)}
    heads[CHAIN] = audit_head(session)
    return heads


def _all_links(session: Session) -> Iterator[Any]:
    """(step-through id, *link), chain by chain, a few thousand at a time."""
    query = select_links(EventRow, "step_through_id").execution_options(yield_per=5000)
    for partition in session.connection().execute(query).partitions():
        yield from partition


def _verify_audit(session: Session, heads: Heads) -> ChainCheck:
    links = session.connection().execute(select_links(AuditRow).execution_options(yield_per=5000))
    found = chain.walk(CHAIN, ORIGIN, links, _anchors(heads, CHAIN))
    return ChainCheck(CHAIN, found.length, found.head, found.broken_at, found.reason, found.back_at)


def _of_none(row: Any, anchors: tuple[chain.Head, ...]) -> ChainCheck:
    """Of a step-through without events: it has just begun, or was deleted."""
    return verify_chain(row, (), anchors) if row.deleted_at is None else verify_deleted(row, anchors)


def _anchors(heads: Heads, name: str) -> tuple[chain.Head, ...]:
    return heads.get(name, ())


def _missing(step_through_id: str) -> ChainCheck:
    return ChainCheck(step_through_id, 0, "", 0, "the step-through itself was removed")


def _must_be_signed(row: Any) -> bool:
    return row.status == "finished" or row.deleted_at is not None


def _unsigned(row: Any) -> str:
    ended = "finished" if row.deleted_at is None else "deleted"
    return (
        f"step-through {faults.shown(row.id)} is {ended}, but no signed head of it is there: the file was cut, or could "
        "not be written then"
    )


def _dated_back(check: ChainCheck) -> str:
    name = "the audit trail" if check.chain == CHAIN else f"step-through {faults.shown(check.chain)}"
    return f"time ran backwards in {name}: link {check.back_at} is dated before the link before it"

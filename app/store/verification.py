"""Verify every chain and all that lies beside them, and keep the heads that give away what was cut off at the end.

Events are read a few thousand at a time and cohorts' tables one at a time, so that a large store fits into the memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from . import chain, faults
from .audit import CHAIN, ORIGIN, audit_head
from .errors import StoreInputError
from .links import select_links
from .records import Verdict
from .step_throughs import verify_chain
from .tables import AuditRow, EventRow, StepThroughRow

Heads = Mapping[str, chain.Head]  # by step-through id, and "audit"
HASHED = ("id", "cohort_hash", "model_fingerprint", "length", "head_hash")  # what a chain cannot be walked without


@dataclass(frozen=True)
class Verification:
    """What was found: `broken` holds one verdict for each chain that is not whole, `faults` what else is wrong, in words.

    anchored: how many chains were held against a head kept elsewhere.
    """

    step_throughs: int
    events: int
    acts: int
    broken: tuple[Verdict, ...]
    faults: tuple[str, ...] = ()
    anchored: int = 0

    @property
    def intact(self) -> bool:
        return not self.broken and not self.faults


def verify_everything(session: Session, heads: Heads | None = None) -> Verification:
    """The file and its triggers, then all that is stored.

    heads: exported earlier; every chain must still pass through its own.
    """
    found = faults.damage(session) + faults.missing_triggers(session)
    try:
        records = verify_records(session, heads)
    except SQLAlchemyError:
        if not found:
            raise
        return Verification(0, 0, 0, (), (*found, "what is stored cannot be read to its end"))
    return replace(records, faults=(*found, *records.faults))


def verify_records(session: Session, heads: Heads | None = None) -> Verification:
    """All chains; each row by itself, against the data it speaks of, and against the acts."""
    try:
        return _verify_records(session, heads or {})
    except OperationalError as error:
        if not faults.is_undecodable(error):
            raise
    with faults.any_text(session):
        return _verify_records(session, heads or {})


def _verify_records(session: Session, heads: Heads) -> Verification:
    malformed = faults.malformed(session)
    rows = {row.id: row for row in session.execute(faults.as_stored(StepThroughRow))}
    unreadable = {row.id for row in rows.values() if not faults.is_readable(row, StepThroughRow, HASHED)}
    verdicts = [Verdict(str(name), 0, "", 0, "its own row cannot be read") for name in unreadable]
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
        verdicts.append(verify_chain(row, (link[1:] for link in links), _anchors(heads, row.id)))
    verdicts += [
        verify_chain(row, (), _anchors(heads, row.id)) for row in rows.values() if row.id not in walked | unreadable
    ]
    audit = _verify_audit(session, heads)
    told = faults.read_acts(session)
    removed = (set(told.step_throughs) | set(heads)) - {CHAIN} - set(rows)
    broken = [verdict for verdict in verdicts if not verdict.intact]
    broken += orphans + [_missing(step_through_id) for step_through_id in sorted(removed)]
    broken += [] if audit.intact else [audit]
    events = sum(verdict.length for verdict in verdicts)
    others = (*malformed, *faults.contradictions(session, told))
    return Verification(len(rows), events, audit.length, tuple(broken), others, len(heads))


def export_heads(session: Session) -> str:
    """The heads of all chains as JSON. Kept away from the database, they make later removal at the end visible."""
    columns = select(StepThroughRow.id, StepThroughRow.length, StepThroughRow.head_hash).order_by(StepThroughRow.id)
    heads = {row.id: chain.Head(row.length, row.head_hash) for row in session.execute(columns)}
    heads[CHAIN] = audit_head(session)
    return json.dumps({name: head._asdict() for name, head in heads.items()}, indent=1) + "\n"


def read_heads(text: str) -> Heads:
    try:
        heads = {name: chain.Head(int(head["length"]), str(head["hash"])) for name, head in json.loads(text).items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        heads = {}
    if not heads:
        raise StoreInputError("The file of heads is not one that `python -m app.store heads` wrote, or holds no heads.")
    return heads


def _all_links(session: Session) -> Iterator[Any]:
    """(step-through id, *link), chain by chain, a few thousand at a time."""
    query = select_links(EventRow, "step_through_id").execution_options(yield_per=5000)
    for partition in session.connection().execute(query).partitions():
        yield from partition


def _verify_audit(session: Session, heads: Heads) -> Verdict:
    links = session.connection().execute(select_links(AuditRow).execution_options(yield_per=5000))
    found = chain.walk(CHAIN, ORIGIN, links, _anchors(heads, CHAIN))
    return Verdict(CHAIN, found.length, found.head, found.broken_at, found.reason)


def _anchors(heads: Heads, name: str) -> tuple[chain.Head, ...]:
    return (heads[name],) if name in heads else ()


def _missing(step_through_id: str) -> Verdict:
    return Verdict(step_through_id, 0, "", 0, "the step-through itself was removed")

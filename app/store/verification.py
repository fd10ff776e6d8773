"""Verify every chain at once, in constant memory, and keep the heads that give away what was cut off at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from . import chain
from .audit import CHAIN, ORIGIN, audit_head
from .errors import StoreInputError
from .links import select_links
from .records import Verdict
from .step_throughs import verify_chain
from .tables import AuditRow, EventRow, StepThroughRow

Heads = Mapping[str, chain.Head]  # by step-through id, and "audit"


@dataclass(frozen=True)
class Verification:
    """What was found: `broken` holds one verdict for each chain that is not whole."""

    step_throughs: int
    events: int
    acts: int
    broken: tuple[Verdict, ...]

    @property
    def intact(self) -> bool:
        return not self.broken


def verify_everything(session: Session, heads: Heads | None = None) -> Verification:
    """heads: exported earlier; every chain must still pass through its own."""
    heads = heads or {}
    rows = {row.id: row for row in session.execute(select(*StepThroughRow.__table__.columns))}
    verdicts, orphans = [], []
    by_chain = groupby(_all_links(session), key=itemgetter(0))
    walked = set()
    for step_through_id, links in by_chain:
        row = rows.get(step_through_id)
        if row is None:
            orphans.append(_missing(step_through_id))
            continue
        walked.add(step_through_id)
        verdicts.append(verify_chain(row, (link[1:] for link in links), _anchors(heads, row.id)))
    verdicts += [verify_chain(row, (), _anchors(heads, row.id)) for row in rows.values() if row.id not in walked]
    audit = _verify_audit(session, heads)
    removed = (_created_step_throughs(session) | set(heads)) - {CHAIN} - set(rows)
    broken = [verdict for verdict in verdicts if not verdict.intact]
    broken += orphans + [_missing(step_through_id) for step_through_id in sorted(removed)]
    broken += [] if audit.intact else [audit]
    return Verification(len(rows), sum(verdict.length for verdict in verdicts), audit.length, tuple(broken))


def export_heads(session: Session) -> str:
    """The heads of all chains as JSON. Kept away from the database, they make later removal at the end visible."""
    columns = select(StepThroughRow.id, StepThroughRow.length, StepThroughRow.head_hash).order_by(StepThroughRow.id)
    heads = {row.id: chain.Head(row.length, row.head_hash) for row in session.execute(columns)}
    heads[CHAIN] = audit_head(session)
    return json.dumps({name: head._asdict() for name, head in heads.items()}, indent=1) + "\n"


def read_heads(text: str) -> Heads:
    try:
        heads = {name: chain.Head(int(head["length"]), str(head["hash"])) for name, head in json.loads(text).items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    else:
        return heads
    raise StoreInputError("The file of heads is not one that `python -m app.store heads` wrote.")


def _all_links(session: Session) -> Iterator[Any]:
    """(step-through id, *link), chain by chain, a few thousand at a time."""
    query = select_links(EventRow, "step_through_id").execution_options(yield_per=5000)
    for partition in session.connection().execute(query).partitions():
        yield from partition


def _verify_audit(session: Session, heads: Heads) -> Verdict:
    links = session.connection().execute(select_links(AuditRow).execution_options(yield_per=5000))
    found = chain.walk(CHAIN, ORIGIN, links, _anchors(heads, CHAIN))
    return Verdict(CHAIN, found.length, found.head, found.broken_at, found.reason)


def _created_step_throughs(session: Session) -> set[str]:
    payloads = session.scalars(select(AuditRow.payload).where(AuditRow.kind == "step-through created"))
    created = set()
    for payload in payloads:
        try:
            created.add(str(json.loads(payload)["subject"]))
        except (ValueError, KeyError, TypeError):
            continue  # an altered act, which the audit chain's own verdict names
    return created


def _anchors(heads: Heads, name: str) -> tuple[chain.Head, ...]:
    return (heads[name],) if name in heads else ()


def _missing(step_through_id: str) -> Verdict:
    return Verdict(step_through_id, 0, "", 0, "the step-through itself was removed")

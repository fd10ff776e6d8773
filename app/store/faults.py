"""Faults beside the chains: a damaged file, triggers that are gone, rows that are malformed or that the acts contradict.

Each fault is a sentence with ids and names of columns only: a stored value may be a patient's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

from sqlalchemy import LargeBinary, select, text, type_coerce
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.types import NullType

from . import times
from .audit import digest
from .inputs import require_uuid
from .tables import AuditRow, CohortDataRow, CohortRow, EvidenceRow, JobRow, ModelRow, StepThroughRow, Table, UtcTime

NAMES: dict[type[Table], str] = {
    CohortRow: "cohort",
    StepThroughRow: "step-through",
    EvidenceRow: "evidence",
    JobRow: "job",
    ModelRow: "model",
}
JSON_COLUMNS = {(EvidenceRow, "settings"), (EvidenceRow, "results"), (JobRow, "config"), (JobRow, "result")}
LONG_TABLES = (
    "events",
    "cohort_data",
)  # the walk along the chains, and the hashes of the data, read every row of these


# -- the file and its triggers --------------------------------------------------------------------------------------


def damage(session: Session) -> tuple[str, ...]:
    """What SQLite itself finds. PostgreSQL has checksums of its own."""
    if not _is_sqlite(session):
        return ()
    short = [name for name in Table.metadata.tables if name not in LONG_TABLES]
    checks = ["PRAGMA quick_check", *(f"PRAGMA integrity_check({name})" for name in short)]
    if all(session.execute(text(check)).scalars().all() == ["ok"] for check in checks):
        return ()
    return ("the database file is damaged: SQLite's own check of it fails. Restore a back-up",)


def missing_triggers(session: Session) -> tuple[str, ...]:
    """The append-only triggers that are gone, switched off, or no longer what the migrations made."""
    if _is_sqlite(session):
        query = text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        there = {row.name: row.sql for row in session.execute(query)}
        gone = [name for name, statement in _sqlite_triggers() if there.get(name) != statement]
    else:
        query = text("SELECT tgname FROM pg_trigger WHERE tgenabled IN ('O', 'A')")
        names = set(session.execute(query).scalars())
        gone = [f"{table}_no_{what}" for table in ("events", "audit") for what in ("change", "truncate")]
        gone = [name for name in gone if name not in names]
    return tuple(f"the trigger {name}, which keeps what is stored from being changed, is missing" for name in gone)


def _sqlite_triggers() -> Iterator[tuple[str, str]]:
    """As the migrations made them. Of events, those of a step-through that is deleted may go."""
    deleted = "SELECT 1 FROM step_throughs WHERE id = OLD.step_through_id AND deleted_at IS NOT NULL"
    for table, key in (("events", "step_through_id = NEW.step_through_id AND "), ("audit", "")):
        refuse = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        taken = f"SELECT 1 FROM {table} WHERE {key}(sequence = NEW.sequence OR event_id = NEW.event_id)"
        for name, when in (
            ("update", f"BEFORE UPDATE ON {table}"),
            ("delete", f"BEFORE DELETE ON {table}" + (f" WHEN NOT EXISTS ({deleted})" if table == "events" else "")),
            ("replace", f"BEFORE INSERT ON {table} WHEN EXISTS ({taken})"),
        ):
            yield f"{table}_no_{name}", f"CREATE TRIGGER {table}_no_{name} {when} {refuse}"


def _is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"


# -- malformed rows -------------------------------------------------------------------------------------------------


def as_stored(row_type: type[Table]) -> Any:
    """All columns but those of bytes, none converted: a malformed one must not end the reading of the others."""
    columns = [column for column in row_type.__table__.columns if not isinstance(column.type, LargeBinary)]
    return select(*(type_coerce(column, NullType()).label(column.name) for column in columns))


def malformed(session: Session) -> tuple[str, ...]:
    found = []
    for row_type, name in NAMES.items():
        for row in session.execute(as_stored(row_type)):
            wrong = [column for column in row_type.__table__.columns if not _is_well_formed(row, row_type, column)]
            if wrong:
                columns = ", ".join(column.name for column in wrong)
                found.append(f"{name} {shown(row.id)} is malformed ({columns})")
    return tuple(found)


def is_readable(row: Any, row_type: type[Table], names: tuple[str, ...]) -> bool:
    return all(_is_well_formed(row, row_type, row_type.__table__.columns[name]) for name in names)


def _is_well_formed(row: Any, row_type: type[Table], column: Any) -> bool:
    value = getattr(row, column.name)
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, UtcTime):
        return _is_moment(value)
    kind = column.type.python_type
    if kind is bool:
        return value in (0, 1)
    if kind is not str:
        return isinstance(value, (int, float) if kind is float else kind)
    return _is_text(value) and ((row_type, column.name) not in JSON_COLUMNS or _is_json(value))


def _is_moment(value: Any) -> bool:
    try:
        return times.to_text(times.from_text(value)) == value
    except (ValueError, TypeError, OverflowError):
        return False


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


def is_undecodable(error: OperationalError) -> bool:
    """Whether it is Python's, about bytes in SQLite that are no text."""
    return "decode" in str(error.orig)


@contextmanager
def any_text(session: Session) -> Iterator[None]:
    """Reads bytes that are no text as halves of pairs, which no stored text holds. Slower than reading text only."""
    driver: Any = session.connection().connection.driver_connection
    before, driver.text_factory = driver.text_factory, partial(str, encoding="utf-8", errors="surrogateescape")
    try:
        yield
    finally:
        driver.text_factory = before


def shown(name: Any) -> str:
    """An id as it is, unless somebody wrote something else in its place."""
    try:
        return require_uuid("The id", name)
    except ValueError:
        return "(whose id is malformed)"


# -- rows and acts --------------------------------------------------------------------------------------------------


@dataclass
class Told:
    """What the acts tell of one thing: who made it, and its latest details."""

    owner: str
    details: dict[str, Any]
    deleted: bool = False


@dataclass
class Acts:
    """What the acts tell, by the id of the thing; of models by owner and fingerprint."""

    cohorts: dict[str, Told] = field(default_factory=dict)
    step_throughs: dict[str, Told] = field(default_factory=dict)
    models: dict[tuple[str, str], Told] = field(default_factory=dict)

    def add(self, kind: str, owner: str, subject: str, details: dict[str, Any]) -> None:
        if kind == "cohort added":
            self.cohorts[subject] = Told(owner, details)
        elif kind in ("cohort shared", "cohort unshared"):
            self.cohorts[subject].details["shared"] = kind == "cohort shared"
        elif kind in ("cohort deleted", "cohort's schema erased"):
            told = self.cohorts[subject]
            told.deleted, told.details = True, {**told.details, **details, "shared": False}
        elif kind == "step-through created":
            self.step_throughs[subject] = Told(owner, details)
        elif kind == "step-through renamed":
            self.step_throughs[subject].details["title"] = details["title"]
        elif kind == "step-through deleted":
            told = self.step_throughs[subject]
            told.deleted, told.details = True, {**told.details, **details, "title": digest(subject, "")}
        elif kind == "model registered":
            self.models[owner, subject] = Told(owner, details)
        elif kind == "model forgotten":
            self.models[owner, subject].deleted = True


def read_acts(session: Session) -> Acts:
    acts = Acts()
    for kind, payload in session.execute(select(AuditRow.kind, AuditRow.payload).order_by(AuditRow.sequence)):
        try:
            act = json.loads(payload)
            acts.add(kind, str(act["owner"]), str(act["subject"]), dict(act["details"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # an altered act, which the audit chain's own verdict names
    return acts


def contradictions(session: Session, acts: Acts) -> Iterator[str]:
    """Where a row is not what the acts tell of it. Acts of earlier releases tell less: what they do not tell is passed."""
    cohorts = {row.id: row for row in session.execute(as_stored(CohortRow))}
    yield from _of_cohorts(cohorts, acts)
    yield from _of_data(session, cohorts, acts)
    for row in session.execute(as_stored(StepThroughRow)):
        told = acts.step_throughs.get(row.id)
        yield from _of_step_through(row, told)
    for row in session.execute(as_stored(ModelRow)):
        told = acts.models.get((row.owner, row.fingerprint))
        told = None if told is None or told.deleted else told
        yield from _of_row(f"model {shown(row.id)}", row.owner, {"shared": row.shared}, told)


def _of_cohorts(cohorts: dict[str, Any], acts: Acts) -> Iterator[str]:
    for row in cohorts.values():
        told = acts.cohorts.get(row.id)
        facts = {
            "content_hash": row.content_hash,
            "shared": row.shared,
            "name": _digest(row.id, row.name),
            "schema": _digest(row.id, row.schema_yaml),
        }
        yield from _of_row(f"cohort {shown(row.id)}", row.owner, facts, told)
        if told is not None and told.deleted != (row.deleted_at is not None):
            yield f"cohort {shown(row.id)}: whether it was deleted is not what the acts tell"
    for name in acts.cohorts.keys() - cohorts.keys():
        yield f"cohort {shown(name)}: it was removed"


def _of_step_through(row: Any, told: Told | None) -> Iterator[str]:
    name, is_deleted = f"step-through {shown(row.id)}", row.deleted_at is not None
    facts = {"cohort": row.cohort_id, "title": _digest(row.id, row.title)}
    if is_deleted:
        links = _digest(row.id, row.link_hashes or "")
        facts |= {"length": row.length, "head": row.head_hash, "links": links}
    yield from _of_row(name, row.owner, facts, told)
    if told is None:
        return
    if told.deleted != is_deleted:
        yield f"{name}: whether it was deleted is not what the acts tell"
    if told.details.get("broken"):
        yield f"{name}: its chain was not whole when it was deleted ({told.details['broken']})"


def _of_row(name: str, owner: Any, facts: dict[str, Any], told: Told | None) -> Iterator[str]:
    if told is None:
        yield f"{name}: no act tells of it, or of its being its owner's"
        return
    if owner != told.owner:
        yield f"{name}: its owner is not the one that the acts tell"
    for fact, value in facts.items():
        if told.details.get(fact, value) != value:
            yield f"{name}: its {fact.replace('_', ' ')} is not the one that the acts tell"


def _of_data(session: Session, cohorts: dict[str, Any], acts: Acts) -> Iterator[str]:
    """One table at a time: they are large."""
    seen = set()
    columns = (CohortDataRow.cohort_id, CohortDataRow.sha256, CohortDataRow.parquet)
    for name, expected, parquet in session.execute(select(*columns), execution_options={"yield_per": 1}):
        seen.add(name)
        row, told = cohorts.get(name), acts.cohorts.get(name)
        data = bytes(parquet) if isinstance(parquet, (bytes, memoryview)) else b""
        found = sha256(data).hexdigest()
        if row is None or row.deleted_at is not None:
            yield f"cohort {shown(name)}: its data are there, although it is not"
        elif found != expected or len(data) != row.size:
            yield f"cohort {shown(name)}: its data were altered"
        elif told is not None and told.details.get("data", found) != found:
            yield f"cohort {shown(name)}: its data were replaced: they are not those that the acts tell"
    for row in cohorts.values():
        if row.deleted_at is None and row.id not in seen:
            yield f"cohort {shown(row.id)}: its data are missing"


def _digest(subject: Any, stored: Any) -> str:
    """Empty where it is malformed, which is named by itself."""
    return digest(subject, stored) if _is_text(subject) and _is_text(stored) else ""

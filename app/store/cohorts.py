"""Cohorts: a table, its schema, its name and version. Private to their owner unless shared on purpose."""

from __future__ import annotations

import io
from collections.abc import Collection
from hashlib import sha256
from typing import Any

import pandas as pd
from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, delete, exists, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from . import times
from .audit import digest, record_act
from .database import Database, lock_name
from .errors import NotFound, StoreError, StoreInputError
from .inputs import new_id, require_text
from .records import StoredCohort
from .tables import CohortDataRow, CohortRow, EvidenceRow, StepThroughRow


class Cohorts:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        owner: str,
        name: str,
        table: pd.DataFrame | bytes,
        schema_yaml: str,
        content_hash: str,
        shared: bool = False,
    ) -> StoredCohort:
        """Store a cohort under the next version of its name. The same table under the same name is stored once.

        table: a DataFrame, or the bytes that `to_parquet` made of it.
        content_hash: of what a model computes from. Two tables with the same content may differ in ignored columns.
        """
        require_text("The owner", owner)
        require_text("The cohort's name", name)
        require_text("The schema", schema_yaml, 5_000_000)
        require_text("The cohort's content hash", content_hash, 64)
        parquet = table if isinstance(table, bytes) else to_parquet(table)
        with self._database.writing() as session:
            lock_name(session, f"cohort {owner} {name}")
            same_name = and_(CohortRow.owner == owner, CohortRow.name == name)
            for known in session.scalars(select(CohortRow).where(same_name, _alive(content_hash))):
                if _is_table(session.get_one(CohortDataRow, known.id), parquet):
                    return _cohort(known)
            newest = session.scalar(select(func.max(CohortRow.version)).where(same_name)) or 0
            row = CohortRow(
                id=new_id(),
                owner=owner,
                name=name,
                version=newest + 1,
                content_hash=content_hash,
                schema_yaml=schema_yaml,
                shared=shared,
                size=len(parquet),
                created_at=times.now(),
                deleted_at=None,
            )
            session.add(row)
            session.flush()
            data = sha256(parquet).hexdigest()
            session.add(CohortDataRow(cohort_id=row.id, sha256=data, parquet=parquet))
            told = {"data": data, "name": digest(row.id, name), "schema": digest(row.id, schema_yaml)}
            record_act(session, owner, "cohort added", row.id, content_hash=content_hash, shared=shared, **told)
            return _cohort(row)

    def list(self, owner: str) -> tuple[StoredCohort, ...]:
        """The owner's cohorts and those shared with everyone, newest first."""
        with self._database.reading() as session:
            rows = session.scalars(
                select(CohortRow)
                .where(visible_to(owner), CohortRow.deleted_at.is_(None))
                .order_by(CohortRow.created_at.desc(), CohortRow.id)
            )
            return tuple(_cohort(row) for row in rows)

    def get(self, owner: str, cohort_id: str) -> StoredCohort:
        """What is known about a cohort, without its data: also one that was deleted (look at `deleted_at`) or is no
        longer shared, if it is the owner's or one of the owner's step-throughs is based on it."""
        with self._database.reading() as session:
            row = session.scalars(_SEEN_OR_USED, {"cohort": cohort_id, "owner": owner}).one_or_none()
            return _cohort(_found(row))

    def frame(self, owner: str, cohort_id: str) -> pd.DataFrame:
        """The table as it was stored, checked against the hash taken then."""
        with self._database.reading() as session:
            row = usable_cohort(session, owner, cohort_id)
            data = session.get_one(CohortDataRow, row.id)
            parquet, expected = data.parquet, data.sha256
        if sha256(parquet).hexdigest() != expected:
            raise StoreError(f"The stored data of cohort {cohort_id} are damaged. Upload the table again.")
        return from_parquet(parquet)

    def share(self, owner: str, cohort_id: str, shared: bool = True) -> StoredCohort:
        """Show a cohort to everyone who uses this installation, or to nobody else again."""
        with self._database.writing() as session:
            row = _own_cohort(session, owner, cohort_id)
            if row.shared != shared:
                row.shared = shared
                record_act(session, owner, "cohort shared" if shared else "cohort unshared", row.id)
            return _cohort(row)

    def delete(self, owner: str, cohort_id: str) -> None:
        """Erase a cohort's data and the evidence drawn from them. Name and hash stay for its step-throughs, and while there
        are any the schema that they are read by."""
        with self._database.writing() as session:
            row = _own_cohort(session, owner, cohort_id)
            row.deleted_at, row.shared = times.now(), False
            session.execute(delete(CohortDataRow).where(CohortDataRow.cohort_id == row.id))
            session.flush()
            _erase_orphaned_evidence(session, owner, row.content_hash)
            record_act(session, owner, "cohort deleted", row.id, content_hash=row.content_hash)
            erase_unread_schemas(session, [row.id])
        self._database.empty_journal()

    # For the server itself, whoever owns them.

    def deleted(self, cohort_ids: Collection[str]) -> frozenset[str]:
        """Those of them that were deleted."""
        return self._those(select(CohortRow.id).where(CohortRow.deleted_at.is_not(None)), CohortRow.id, cohort_ids)

    def still_stored(self, content_hashes: Collection[str]) -> frozenset[str]:
        """Those of them that a cohort still has."""
        alive = select(CohortRow.content_hash).where(CohortRow.deleted_at.is_(None))
        return self._those(alive, CohortRow.content_hash, content_hashes)

    def _those(self, query: Select[Any], column: InstrumentedAttribute[str], values: Collection[str]) -> frozenset[str]:
        if not values:
            return frozenset()
        with self._database.reading() as session:
            return frozenset(session.scalars(query.where(column.in_(values))))


def erase_unread_schemas(session: Session, cohort_ids: Collection[str]) -> None:
    """A schema has words of cells, levels and classes. It goes once its cohort and all step-throughs that are read by it are
    deleted; to be called after the act that tells of the deletion, which waits for deletions that are not finished."""
    read = exists().where(StepThroughRow.cohort_id == CohortRow.id, StepThroughRow.deleted_at.is_(None))
    unread = select(CohortRow).where(CohortRow.id.in_(cohort_ids), CohortRow.deleted_at.is_not(None), ~read)
    for row in session.scalars(unread.where(CohortRow.schema_yaml != "").order_by(CohortRow.id)).all():
        row.schema_yaml = ""
        record_act(session, row.owner, "cohort's schema erased", row.id, schema=digest(row.id, ""))


def _erase_orphaned_evidence(session: Session, owner: str, content_hash: str) -> None:
    """Evidence goes when its owner has no such cohort any more; all of it, when nobody has."""
    alive = _alive(content_hash)
    if not session.scalar(select(exists().where(alive))):
        session.execute(delete(EvidenceRow).where(EvidenceRow.cohort_hash == content_hash))
    elif not session.scalar(select(exists().where(alive, CohortRow.owner == owner))):
        session.execute(delete(EvidenceRow).where(EvidenceRow.cohort_hash == content_hash, EvidenceRow.owner == owner))


def _alive(content_hash: str) -> ColumnElement[bool]:
    return and_(CohortRow.content_hash == content_hash, CohortRow.deleted_at.is_(None))


def visible_to(owner: str | BindParameter[str]) -> ColumnElement[bool]:
    return or_(CohortRow.owner == owner, CohortRow.shared.is_(True))


# Made once: every press asks, and to put a statement together takes longer than to run it.
_SEEN_OR_USED = select(CohortRow).where(
    CohortRow.id == bindparam("cohort"),
    or_(
        visible_to(bindparam("owner")),
        exists().where(
            StepThroughRow.cohort_id == CohortRow.id,
            StepThroughRow.owner == bindparam("owner"),
            StepThroughRow.deleted_at.is_(None),
        ),
    ),
)


def usable_cohort(session: Session, owner: str, cohort_id: str, held: bool = False) -> CohortRow:
    """A cohort whose data this owner may use. held: nobody deletes it while this transaction lasts."""
    return _one(session, CohortRow.id == cohort_id, visible_to(owner), CohortRow.deleted_at.is_(None), held=held)


def _one(session: Session, *conditions: ColumnElement[bool], held: bool) -> CohortRow:
    query = select(CohortRow).where(*conditions)
    return _found(session.scalars(query.with_for_update(read=True) if held else query).one_or_none())


def _found(row: CohortRow | None) -> CohortRow:
    if row is None:
        raise NotFound("There is no such cohort: it was deleted, or is not shared with you. Upload the table again.")
    return row


def _own_cohort(session: Session, owner: str, cohort_id: str) -> CohortRow:
    row = session.scalars(
        select(CohortRow)
        .where(CohortRow.id == cohort_id, CohortRow.owner == owner, CohortRow.deleted_at.is_(None))
        .with_for_update()
    ).one_or_none()
    if row is None:
        raise NotFound("There is no such cohort of yours. Only its owner can share or delete a cohort.")
    return row


def to_parquet(frame: pd.DataFrame) -> bytes:
    """Compressed Parquet, which keeps every column's type. Its own errors quote cells, so ours replace them."""
    buffer = io.BytesIO()
    try:
        frame.to_parquet(buffer, index=False, compression="zstd")
        return buffer.getvalue()
    except (ValueError, TypeError, OverflowError):  # pyarrow's errors are among these
        pass
    columns = [position for position, name in enumerate(frame.columns) if not _storable(frame, position)]
    where = f" (column {columns[0] + 1} of {frame.shape[1]})" if columns else ""
    raise StoreInputError(
        f"The table cannot be stored: a column mixes text and numbers, or has no plain name{where}. "
        "Give every column one type and a name."
    )


def from_parquet(data: bytes) -> pd.DataFrame:
    """The table of which `to_parquet` made these bytes."""
    return pd.read_parquet(io.BytesIO(data))


def _is_table(data: CohortDataRow, parquet: bytes) -> bool:
    """Another release of pyarrow may write the same table in other bytes."""
    stored = sha256(data.parquet).hexdigest()
    if stored != data.sha256:  # damaged
        return False
    if stored == sha256(parquet).hexdigest():
        return True
    return bool(from_parquet(data.parquet).equals(from_parquet(parquet)))


def _storable(frame: pd.DataFrame, position: int) -> bool:
    try:
        frame.iloc[:, [position]].to_parquet(io.BytesIO(), index=False)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _cohort(row: CohortRow) -> StoredCohort:
    return StoredCohort(
        id=row.id,
        owner=row.owner,
        name=row.name,
        version=row.version,
        content_hash=row.content_hash,
        schema_yaml=row.schema_yaml,
        shared=row.shared,
        size=row.size,
        created_at=row.created_at,
        deleted_at=row.deleted_at,
    )

"""Evidence: what was measured about a model on a cohort, found again by cohort content, model and settings."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from sqlalchemy import and_, exists, or_, select

from . import times
from .chain import canonical_json
from .database import Database, lock_name
from .inputs import new_id, require_text
from .records import StoredEvidence
from .tables import CohortRow, EvidenceRow


class EvidenceRecords:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self,
        owner: str,
        cohort_hash: str,
        model_fingerprint: str,
        settings: dict[str, Any],
        results: dict[str, Any],
    ) -> StoredEvidence:
        """Store results, in place of earlier ones for the same content, model and settings."""
        require_text("The owner", owner)
        require_text("The cohort's content hash", cohort_hash, 64)
        require_text("The model's fingerprint", model_fingerprint)
        settings_json, results_json = canonical_json(settings), canonical_json(results)
        settings_hash = sha256(settings_json.encode()).hexdigest()
        with self._database.writing() as session:
            lock_name(session, f"evidence {owner} {cohort_hash} {model_fingerprint} {settings_hash}")
            row = session.scalars(
                select(EvidenceRow).where(
                    EvidenceRow.owner == owner,
                    EvidenceRow.cohort_hash == cohort_hash,
                    EvidenceRow.model_fingerprint == model_fingerprint,
                    EvidenceRow.settings_hash == settings_hash,
                )
            ).one_or_none()
            if row is None:
                row = EvidenceRow(
                    id=new_id(),
                    owner=owner,
                    cohort_hash=cohort_hash,
                    model_fingerprint=model_fingerprint,
                    settings_hash=settings_hash,
                    settings=settings_json,
                )
                session.add(row)
            row.results, row.created_at = results_json, times.now()
            return _evidence(row)

    def find(
        self, owner: str, cohort_hash: str, model_fingerprint: str, settings: dict[str, Any]
    ) -> StoredEvidence | None:
        """The owner's results, or else those of whoever shares a cohort of this content."""
        settings_hash = sha256(canonical_json(settings).encode()).hexdigest()
        for evidence in self.list(owner, cohort_hash, model_fingerprint, settings_hash):
            return evidence
        return None

    def list(
        self,
        owner: str,
        cohort_hash: str,
        model_fingerprint: str | None = None,
        settings_hash: str | None = None,
    ) -> tuple[StoredEvidence, ...]:
        """All results that the owner may see for a cohort's content: the owner's first, then the newest."""
        shared = exists().where(
            CohortRow.content_hash == EvidenceRow.cohort_hash,
            CohortRow.owner == EvidenceRow.owner,
            CohortRow.shared.is_(True),
            CohortRow.deleted_at.is_(None),
        )
        query = select(EvidenceRow).where(
            and_(EvidenceRow.cohort_hash == cohort_hash, or_(EvidenceRow.owner == owner, shared))
        )
        if model_fingerprint is not None:
            query = query.where(EvidenceRow.model_fingerprint == model_fingerprint)
        if settings_hash is not None:
            query = query.where(EvidenceRow.settings_hash == settings_hash)
        query = query.order_by(EvidenceRow.created_at.desc(), EvidenceRow.id)
        with self._database.reading() as session:
            found = [_evidence(row) for row in session.scalars(query)]
        return tuple(sorted(found, key=lambda evidence: evidence.owner != owner))


def _evidence(row: EvidenceRow) -> StoredEvidence:
    return StoredEvidence(
        owner=row.owner,
        cohort_hash=row.cohort_hash,
        model_fingerprint=row.model_fingerprint,
        settings=json.loads(row.settings),
        results=json.loads(row.results),
        created_at=row.created_at,
    )

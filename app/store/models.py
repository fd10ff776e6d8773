"""Models that were trained or brought in here: a name, a fingerprint, the folder that holds them, and their card."""

from __future__ import annotations

from sqlalchemy import or_, select

from . import times
from .audit import record_act
from .database import Database, lock_name
from .errors import NotFound
from .inputs import new_id, require_text
from .records import StoredModel
from .tables import ModelRow


class Models:
    def __init__(self, database: Database) -> None:
        self._database = database

    def register(
        self, owner: str, name: str, fingerprint: str, folder: str, card: str = "", shared: bool = False
    ) -> StoredModel:
        """Make a model selectable. Registering the same fingerprint again renews its name, folder and card."""
        require_text("The owner", owner)
        require_text("The model's name", name)
        require_text("The model's fingerprint", fingerprint)
        require_text("The model's folder", folder, 4000)
        require_text("The model's card", card, 1_000_000, empty=True)
        with self._database.writing() as session:
            lock_name(session, f"model {owner} {fingerprint}")
            row = session.scalars(
                select(ModelRow).where(ModelRow.owner == owner, ModelRow.fingerprint == fingerprint)
            ).one_or_none()
            if row is None:
                row = ModelRow(id=new_id(), owner=owner, fingerprint=fingerprint, created_at=times.now())
                session.add(row)
            row.name, row.folder, row.card, row.shared = name, folder, card, shared
            record_act(session, owner, "model registered", fingerprint, shared=shared)
            return _model(row)

    def list(self, owner: str) -> tuple[StoredModel, ...]:
        """The owner's models and the shared ones, newest first."""
        with self._database.reading() as session:
            rows = session.scalars(
                select(ModelRow)
                .where(or_(ModelRow.owner == owner, ModelRow.shared.is_(True)))
                .order_by(ModelRow.created_at.desc(), ModelRow.id)
            )
            return tuple(_model(row) for row in rows)

    def get(self, owner: str, fingerprint: str) -> StoredModel:
        for model in self.list(owner):
            if model.fingerprint == fingerprint:
                return model
        raise NotFound("There is no such model, or it is not shared with you.")

    def forget(self, owner: str, fingerprint: str) -> None:
        """Take a model off the list. Its folder stays where it is."""
        with self._database.writing() as session:
            row = session.scalars(
                select(ModelRow).where(ModelRow.owner == owner, ModelRow.fingerprint == fingerprint).with_for_update()
            ).one_or_none()
            if row is None:
                raise NotFound("There is no such model of yours.")
            session.delete(row)
            record_act(session, owner, "model forgotten", fingerprint)


def _model(row: ModelRow) -> StoredModel:
    return StoredModel(
        owner=row.owner,
        name=row.name,
        fingerprint=row.fingerprint,
        folder=row.folder,
        card=row.card,
        shared=row.shared,
        created_at=row.created_at,
    )

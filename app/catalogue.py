"""The models and stored cohorts that an owner may use, loaded and kept in memory.

Pages and background jobs both read from here. The store is asked every time whether the owner may use a thing; what was
loaded is shared by all who may.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import l2m_core as l2m
from app.cache import BoundedCache
from app.settings import AppSettings
from app.store import NotFound, SignedHeads, Store, StoredCohort, StoredModel
from l2m_core.cohort import Cohort
from l2m_core.errors import L2MError, ModelFileError
from l2m_core.memory import L2M
from l2m_core.paths import all_folders, model_folders
from l2m_core.schema import Schema

DEFAULT_MODEL = "general"
MODELS_IN_MEMORY = 3
CELLS_IN_MEMORY = 50_000_000  # of all stored cohorts together


class Catalogue:
    """One process's view of an installation: its settings, its store, and what was loaded from them."""

    def __init__(self, settings: AppSettings) -> None:
        self.settings = settings.prepare()
        self.store = Store(self.settings.database_url, migrate=True, signed=SignedHeads.of(self.settings))
        self._models = BoundedCache(MODELS_IN_MEMORY)
        self._fingerprints: dict[Path, str] = {}
        self._released: dict[str, Path] = {}  # by fingerprint; those that anybody may use
        self._cohorts = BoundedCache(CELLS_IN_MEMORY, weigh=lambda cohort: cohort.x.size)

    # -- models -----------------------------------------------------------------------------------------------------

    def model_names(self, owner: str) -> dict[str, Path]:
        """Name → folder of every model that the owner may use, the released ones first."""
        return model_folders() | {name: Path(stored.folder) for name, stored in self.stored_models(owner).items()}

    def stored_models(self, owner: str) -> dict[str, StoredModel]:
        """Those of them that were made here, the owner's own first, under names that differ from all others."""
        taken, found = set(model_folders()), {}
        for stored in sorted(self.store.models.list(owner), key=lambda one: one.owner != owner):
            name = f"{stored.name} ({stored.fingerprint[:8]})" if stored.name in taken else stored.name
            taken.add(name)
            found[name] = stored
        return found

    def known_models(self, owner: str) -> dict[str, Path]:
        """The same and those that are offered to nobody, as earlier releases: step-throughs may have been made with one."""
        return all_folders() | self.model_names(owner)

    def model(self, owner: str, name: str = DEFAULT_MODEL) -> L2M:
        folder = self.known_models(owner).get(name)
        if folder is None:
            raise ModelFileError(f"There is no model '{name}' any more. Choose another one.")
        return self._load(folder, name)

    def model_of(self, owner: str, fingerprint: str) -> L2M | None:
        """The model with this fingerprint; None when it is not here (any more)."""
        # Mostly it is a released one that was asked for before: neither folders nor the store need be searched.
        kept = self._released.get(fingerprint)
        if kept is not None and (model := self._load_if(kept, fingerprint, kept.name)) is not None:
            return model
        for name, folder in all_folders().items():
            if (model := self._load_if(folder, fingerprint, name)) is not None:
                self._released[fingerprint] = folder
                return model
        models = (self._load_if(folder, fingerprint, name) for name, folder in self.model_names(owner).items())
        return next((model for model in models if model is not None), None)

    def _load_if(self, folder: Path, fingerprint: str, name: str) -> L2M | None:
        """The folder's model, if it is the one with this fingerprint and can be read."""
        if self._fingerprints.get(folder, fingerprint) != fingerprint:
            return None
        try:
            model = self._load(folder, name)
        except L2MError:
            return None
        return model if model.fingerprint == fingerprint else None

    def _load(self, folder: Path, name: str) -> L2M:
        """Called as its maker named it: the folder of a model that was made here is called by the job's id."""
        facts = folder / "model.yaml"
        changed = facts.stat().st_mtime_ns if facts.is_file() else 0
        model = self._models.get((folder, changed, name), lambda: self._read_model(folder, name))
        self._fingerprints[folder] = model.fingerprint
        return model

    def _read_model(self, folder: Path, name: str) -> L2M:
        model = l2m.load(str(folder), self.settings.device)
        return replace(model, release=replace(model.release, name=name))

    # -- cohorts ----------------------------------------------------------------------------------------------------

    def cohort(self, owner: str, stored: StoredCohort) -> Cohort:
        """The cohort with its own table: ignored columns of two tables may differ where the cohorts' contents are the same.

        `stored` must come from the store for this owner: its sharing flag is the permission to use it.
        """
        if stored.deleted_at is not None:
            raise NotFound(
                f"The data of cohort '{stored.name}' were deleted, so nothing can be computed from them any more. "
                "Upload the same table again to begin anew."
            )
        if not stored.is_usable_by(owner):
            raise NotFound(
                f"Cohort '{stored.name}' is not shared with you any more. Upload its table yourself to begin anew."
            )
        return self._cohorts.get(stored.id, lambda: self._read_cohort(owner, stored))

    def has_loaded(self, stored: StoredCohort) -> bool:
        """Whether the cohort is in memory already."""
        return self._cohorts.peek(stored.id) is not None

    def _read_cohort(self, owner: str, stored: StoredCohort) -> Cohort:
        frame = self.store.cohorts.frame(owner, stored.id)
        return Cohort.restored(frame, Schema.from_yaml(stored.schema_yaml), stored.content_hash, stored.name)

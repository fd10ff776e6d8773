"""What all sessions of this process share: the store, the models, and cohorts that a model has read.

Nothing here belongs to one session. Whether an owner may see a thing is asked of the store every time; what was
computed from its content is then found by that content.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import l2m_core as l2m
from app.host.cache import Bounded
from app.host.identity import Signer, load_signer
from app.host.settings import Settings
from app.jobs.runner import Runner
from app.store import NotFound, Store, StoredCohort
from app.store.cohorts import from_parquet, to_parquet
from l2m_core.cohort import Cohort
from l2m_core.diagnostics import Diagnostics
from l2m_core.errors import L2MError, ModelFileError, RangeWarning
from l2m_core.memory import L2M, CohortMemory
from l2m_core.paths import model_folders
from l2m_core.schema import Schema
from l2m_core.tables.reading import read_table
from l2m_core.tables.table import Table

DEFAULT_MODEL = "general"
NOBODY = "nobody"  # an owner of nothing: sees released models and what is shared
RESAMPLES = 8  # bootstrap samples of the cohort behind an uncertainty band
FEWEST_RESAMPLES = 4
MEMORY_BYTES = 1_500_000_000  # keys and values of all cohorts kept in memory, their resamples included
RESAMPLE_BYTES = 1_000_000_000  # … and of the resamples of one cohort

Value = TypeVar("Value")


@dataclass(eq=False)
class Conditioned:
    """A model that has read a cohort, under the cohort's name for one owner, and the views made with it."""

    memory: CohortMemory
    views: Bounded = field(default_factory=lambda: Bounded(2000))
    wanted: SimpleQueue[tuple[Any, Any]] = field(default_factory=SimpleQueue)
    """Keys in `views` of what somebody waits for, and the view that makes it; filled and emptied by the step-through page."""
    under_other_names: dict[str, Conditioned] = field(default_factory=dict)

    def named(self, name: str) -> Conditioned:
        """The same memory where another owner gave the cohort another name; its numbers are shared, not copied."""
        cohort = self.memory.cohort
        if name == cohort.name:
            return self
        fresh = Conditioned(replace(self.memory, cohort=replace(cohort, name=name)))
        return self.under_other_names.setdefault(name, fresh)

    @property
    def key(self) -> tuple[str, str]:
        return self.memory.model.fingerprint, self.memory.cohort.content_hash


def _nbytes(value: Any) -> float:
    memories = value if isinstance(value, tuple) else (value.memory,)
    return float(sum(memory.nbytes for memory in memories))


class Services:
    """Made once in a process, from the settings; tests make their own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings.prepare()
        self.signer: Signer = load_signer(self.settings.data_dir)
        self.store = Store(self.settings.database_url, migrate=True)
        self.runner = Runner(self.store, self.settings)
        self.background = ThreadPoolExecutor(1, thread_name_prefix="l2m-background")
        self._models = Bounded(3)
        self._fingerprints: dict[Path, str] = {}
        self._cohorts = Bounded(50_000_000, weigh=lambda cohort: cohort.x.size)
        self._drafts = Bounded(25_000_000, weigh=lambda cohort: cohort.x.size)
        self._tables = Bounded(25_000_000, weigh=lambda table: table.rows * len(table.names))
        self._memories = Bounded(MEMORY_BYTES, weigh=_nbytes)
        self._diagnostics = Bounded(32)

    # -- models -----------------------------------------------------------------------------------------------------

    def model_names(self, owner: str) -> dict[str, Path]:
        """Name → folder of every model that the owner may use, the released ones first."""
        folders = dict(model_folders())
        for stored in self.store.models.list(owner):
            folders.setdefault(stored.name, Path(stored.folder))
        return folders

    def model(self, owner: str, name: str = DEFAULT_MODEL) -> L2M:
        folder = self.model_names(owner).get(name)
        if folder is None:
            raise ModelFileError(f"There is no model '{name}' any more. Choose another one.")
        return self._load(folder)

    def model_of(self, owner: str, fingerprint: str) -> L2M | None:
        """The model with this fingerprint; None when it is not here (any more)."""
        # Mostly it is a released one, for which the store need not be asked.
        for folders in (model_folders, partial(self.model_names, owner)):
            for folder in folders().values():
                if self._fingerprints.get(folder, fingerprint) == fingerprint:
                    model = self._load_or_none(folder)
                    if model is not None and model.fingerprint == fingerprint:
                        return model
        return None

    def _load(self, folder: Path) -> L2M:
        facts = folder / "model.yaml"
        changed = facts.stat().st_mtime_ns if facts.is_file() else 0
        model = self._models.get((folder, changed), lambda: l2m.load(str(folder)))
        self._fingerprints[folder] = model.fingerprint
        return model

    def _load_or_none(self, folder: Path) -> L2M | None:
        try:
            return self._load(folder)
        except L2MError:
            return None

    # -- cohorts ----------------------------------------------------------------------------------------------------

    def table(self, name: str, data: bytes, key: tuple[Hashable, ...]) -> Table:
        """An uploaded file as a table of texts."""
        return self._tables.get(key, lambda: read_table(io.BytesIO(data), name=name))

    def known_table(self, key: tuple[Hashable, ...]) -> Table | None:
        """A table read earlier, if it is still in memory."""
        return self._tables.peek(key)

    def built(self, key: tuple[Hashable, ...], make: Callable[[], Cohort]) -> Cohort:
        """A cohort that is not stored yet; `key` says everything that it is made from, its table's key first."""
        return self._drafts.get(key, make)

    def forget_table(self, key: tuple[Hashable, ...]) -> None:
        """An uploaded file that was stored or discarded, and what was built from it."""
        for kept in (self._tables, self._drafts):
            kept.drop(lambda other: other[: len(key)] == key)

    def add_cohort(self, owner: str, cohort: Cohort) -> StoredCohort:
        """Store a cohort that is read back as the very same one; any other is refused, and nothing is stored."""
        schema, table = cohort.schema.to_yaml(), to_parquet(cohort.frame())
        restored = cohort.read_back(from_parquet(table), schema)
        stored = self.store.cohorts.add(owner, cohort.name, table, schema, cohort.content_hash)
        self._cohorts.get(stored.id, lambda: restored)  # opened next, most likely
        return stored

    def cohort(self, owner: str, stored: StoredCohort) -> Cohort:
        """With its own table: what is ignored in two tables may differ where the cohorts' contents are the same.

        `stored` must come from the store for this owner: what it says of sharing is the permission to use it.
        """
        if stored.deleted_at is not None:
            raise NotFound(
                f"The data of cohort '{stored.name}' were deleted, so nothing can be computed from them any more. "
                "Upload the same table again to go on."
            )
        if not stored.is_usable_by(owner):
            raise NotFound(
                f"Cohort '{stored.name}' is not shared with you any more. Upload its table yourself to go on."
            )
        return self._cohorts.get(stored.id, lambda: self._read_cohort(owner, stored))

    def _read_cohort(self, owner: str, stored: StoredCohort) -> Cohort:
        frame = self.store.cohorts.frame(owner, stored.id)
        return Cohort.restored(frame, Schema.from_yaml(stored.schema_yaml), stored.content_hash, stored.name)

    def delete_cohort(self, owner: str, cohort_id: str) -> None:
        """With what is in memory and what jobs keep of it."""
        self.store.cohorts.delete(owner, cohort_id)
        self.runner.forget_cohort(cohort_id)
        self.forget_deleted()

    def forget_deleted(self) -> None:
        """Lets go of what is in memory of deleted cohorts, whichever process deleted them."""
        cohorts = self.store.cohorts
        self._cohorts.drop(cohorts.deleted(self._cohorts.keys()).__contains__)
        contents = {key[1] for key in self._memories.keys()} | {*self._diagnostics.keys()}
        nobodys = contents - cohorts.anyones(contents)
        self._memories.drop(lambda key: key[1] in nobodys)
        self._diagnostics.drop(nobodys.__contains__)

    def diagnostics(self, cohort: Cohort) -> Diagnostics:
        return self._diagnostics.get(cohort.content_hash, cohort.diagnostics)

    # -- memories ---------------------------------------------------------------------------------------------------

    def conditioned(self, owner: str, stored: StoredCohort, model: L2M) -> Conditioned:
        """The model that has read this cohort; encoding happens once for a content, whoever asks."""
        cohort = self.cohort(owner, stored)
        content = (model.fingerprint, stored.content_hash)
        return self._memories.get(content, lambda: Conditioned(_condition(model, cohort))).named(stored.name)

    def has_read(self, stored: StoredCohort, model: L2M) -> bool:
        """Whether the model's memory of this cohort is at hand."""
        return self._memories.peek((model.fingerprint, stored.content_hash)) is not None

    def resampled(self, conditioned: Conditioned) -> tuple[CohortMemory, ...] | None:
        """Memories of bootstrap samples of the cohort; None while they are being made. Empty: too large to make."""
        memory = conditioned.memory
        count = min(RESAMPLES, int(RESAMPLE_BYTES // max(1, memory.nbytes)))
        if count < FEWEST_RESAMPLES:
            return ()
        future = self._memories.start(
            (*conditioned.key, "resampled"), partial(memory.resampled, count), self.background
        )
        return future.result() if future.done() else None


def _condition(model: L2M, cohort: Cohort) -> CohortMemory:
    """Without the table, which is its owner's alone; what is read of it is everybody's who has the same content."""
    cohort = replace(cohort, source=None, source_rows=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # the notes travel with the memory and are shown on the page
        return model.condition(cohort)


_lock = threading.Lock()
_services: Services | None = None


def get() -> Services:
    """The process's services, made on first use from the environment."""
    global _services
    with _lock:
        if _services is None:
            _services = Services(Settings.from_environment())
        return _services


def reset(make: Callable[[], Services] | None = None) -> None:
    """For tests: forget the services, or put others in their place."""
    global _services
    with _lock:
        old, _services = _services, make() if make else None
    if old is not None:
        old.background.shutdown(wait=True, cancel_futures=True)
        old.store.close()

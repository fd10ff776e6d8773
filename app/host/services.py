"""What all sessions of one process share: the catalogue, uploaded tables, and cohorts that a model has read.

Nothing here belongs to one session. The store is asked every time whether an owner may use a thing. Results are kept by
the content they were computed from, so that owners of the same content share them.
"""

from __future__ import annotations

import io
import logging
import threading
import time
import warnings
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from typing import Any

from app.cache import BoundedCache
from app.catalogue import Catalogue
from app.host.identity import Signer, load_signer
from app.jobs.runner import Runner
from app.settings import AppSettings
from app.store import StoredCohort
from app.store.cohorts import from_parquet, to_parquet
from l2m_core.cohort import Cohort
from l2m_core.diagnostics import Diagnostics
from l2m_core.errors import RangeWarning
from l2m_core.memory import L2M, CohortMemory
from l2m_core.tables.reading import read_table
from l2m_core.tables.table import Table

NOBODY = "nobody"  # an owner without cohorts or models: sees released models and what is shared
RESAMPLES = 8  # bootstrap samples of the cohort behind an uncertainty band
FEWEST_RESAMPLES = 4
MEMORY_BYTES = 1_500_000_000  # cached keys and values of all cohorts, their resamples included
RESAMPLE_BYTES = 1_000_000_000  # of the resamples of one cohort
FIRST_START = 300  # seconds: a secret younger than that was made by this start, in the front of several workers
CELLS_OF_UPLOADS = 25_000_000  # of all uploaded tables in memory, and as many of the cohorts built from them

logger = logging.getLogger("l2m.app")


@dataclass(eq=False)
class Conditioned:
    """A model that has read a cohort, under the cohort's name for one owner, and the views made with it."""

    memory: CohortMemory
    views: BoundedCache = field(default_factory=lambda: BoundedCache(2000))
    wanted: SimpleQueue[tuple[Any, Any]] = field(default_factory=SimpleQueue)
    """Keys in `views` that somebody waits for, each with the view that makes it. The step-through page fills and empties it."""
    under_other_names: dict[str, Conditioned] = field(default_factory=dict)

    def named(self, name: str) -> Conditioned:
        """The same memory under the name that another owner gave the cohort. Its numbers are shared, not copied."""
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


class Services(Catalogue):
    """The catalogue, and all else that the pages of one process share. Made once in a process; tests make their own."""

    loss: str
    """A warning, where the store is new and the data folder is not: what was recorded may be elsewhere. Else empty."""

    def __init__(self, settings: AppSettings) -> None:
        super().__init__(settings)
        self.loss = _loss(self.settings) if self.store.is_new else ""
        if self.loss:
            logger.error("%s", self.loss)
        self.signer: Signer = load_signer(self.settings.data_dir)
        self.runner = Runner(self.store, self.settings)
        self.background = ThreadPoolExecutor(1, thread_name_prefix="l2m-background")
        self._drafts = BoundedCache(CELLS_OF_UPLOADS, weigh=lambda cohort: cohort.x.size)
        self._tables = BoundedCache(CELLS_OF_UPLOADS, weigh=lambda table: table.rows * len(table.names))
        self._memories = BoundedCache(MEMORY_BYTES, weigh=_nbytes)
        self._diagnostics = BoundedCache(32)

    # -- cohorts ----------------------------------------------------------------------------------------------------

    def table(self, name: str, data: bytes, key: tuple[Hashable, ...]) -> Table:
        """An uploaded file as a table of texts."""
        return self._tables.get(key, lambda: read_table(io.BytesIO(data), name=name))

    def known_table(self, key: tuple[Hashable, ...]) -> Table | None:
        """A table read earlier, if it is still in memory."""
        return self._tables.peek(key)

    def built(self, key: tuple[Hashable, ...], make: Callable[[], Cohort]) -> Cohort:
        """A cohort that is not stored yet. `key` holds everything that it is made from, its table's key first."""
        return self._drafts.get(key, make)

    def forget_table(self, key: tuple[Hashable, ...]) -> None:
        """Drops an uploaded table that was stored or discarded, and what was built from it."""
        for kept in (self._tables, self._drafts):
            kept.drop(lambda other: other[: len(key)] == key)

    def add_cohort(self, owner: str, cohort: Cohort) -> StoredCohort:
        """Store a cohort that is read back as the very same one; any other is refused, and nothing is stored."""
        schema, table = cohort.schema.to_yaml(), to_parquet(cohort.frame())
        restored = cohort.read_back(from_parquet(table), schema)
        stored = self.store.cohorts.add(owner, cohort.name, table, schema, cohort.content_hash)
        self._cohorts.get(stored.id, lambda: restored)  # opened next, most likely
        return stored

    def delete_cohort(self, owner: str, cohort_id: str) -> None:
        """Deletes a cohort, what is in memory of it, and what jobs keep of its patients."""
        self.store.cohorts.delete(owner, cohort_id)
        self.runner.forget_cohort(cohort_id)
        self.forget_deleted()

    def forget_deleted(self) -> None:
        """Drops from memory what is left of deleted cohorts, whichever process deleted them."""
        cohorts = self.store.cohorts
        self._cohorts.drop(cohorts.deleted(self._cohorts.keys()).__contains__)
        contents = {key[1] for key in self._memories.keys()} | {*self._diagnostics.keys()}
        unused = contents - cohorts.still_stored(contents)
        self._memories.drop(lambda key: key[1] in unused)
        self._diagnostics.drop(unused.__contains__)

    def diagnostics(self, cohort: Cohort) -> Diagnostics:
        return self._diagnostics.get(cohort.content_hash, cohort.diagnostics)

    # -- memories ---------------------------------------------------------------------------------------------------

    def conditioned(self, owner: str, stored: StoredCohort, model: L2M) -> Conditioned:
        """The model conditioned on this cohort. Each content is encoded once, whoever asks."""
        cohort = self.cohort(owner, stored)
        content = (model.fingerprint, stored.content_hash)
        return self._memories.get(content, lambda: Conditioned(_condition(model, cohort))).named(stored.name)

    def has_read(self, stored: StoredCohort, model: L2M) -> bool:
        """Whether the model's memory of this cohort is kept already."""
        return self._memories.peek((model.fingerprint, stored.content_hash)) is not None

    def resampled(self, conditioned: Conditioned) -> tuple[CohortMemory, ...] | None:
        """Memories of bootstrap samples of the cohort. None while they are being made; empty where they would be too large."""
        memory = conditioned.memory
        count = min(RESAMPLES, int(RESAMPLE_BYTES // max(1, memory.nbytes)))
        if count < FEWEST_RESAMPLES:
            return ()
        future = self._memories.start(
            (*conditioned.key, "resampled"), partial(memory.resampled, count), self.background
        )
        return future.result() if future.done() else None


def _loss(settings: AppSettings) -> str:
    try:
        age = time.time() - settings.secret_file.stat().st_mtime
    except OSError:  # not there: this is the very first start
        return ""
    if age < FIRST_START:
        return ""
    return (
        "The database was empty when the app started, but its data folder has been in use before. If something was "
        "recorded here, it is not in this database: perhaps its file was copied without the -wal file beside it, or "
        "L2M_DATABASE_URL or L2M_DATA_DIR names another place. Stop the app and restore a back-up before you go on."
    )


def _condition(model: L2M, cohort: Cohort) -> CohortMemory:
    """Conditions on the cohort without its source table: the memory is shared by content, the table is its owner's alone."""
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
            _services = Services(AppSettings.from_environment())
        return _services


def reset(make: Callable[[], Services] | None = None) -> None:
    """For tests: forget the services, or replace them."""
    global _services
    with _lock:
        old, _services = _services, make() if make else None
    if old is not None:
        old.background.shutdown(wait=True, cancel_futures=True)
        old.store.close()

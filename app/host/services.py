"""What all sessions of one process share: the catalogue, uploaded tables, and cohorts that a model has read.

Nothing here belongs to one session. The store is asked every time whether an owner may use a thing. Results are kept by
the content they were computed from, so that owners of the same content share them.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Hashable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from queue import SimpleQueue
from typing import Any

from app.cache import BoundedCache
from app.catalogue import Catalogue
from app.host.found_councils import FoundCouncils
from app.host.identity import Signer, load_signer
from app.jobs.runner import Runner
from app.settings import AppSettings
from app.store import DeletedStepThrough, StoredCohort, StoreError
from app.store.cohorts import from_parquet, to_parquet
from l2m_core.cohort import Cohort
from l2m_core.council.council import Council, Recipe
from l2m_core.diagnostics import Diagnostics
from l2m_core.errors import InputError, L2MError, RangeWarning
from l2m_core.evidence.duration import Pace, measure_pace
from l2m_core.memory import L2M, CohortMemory
from l2m_core.model.interface import Progress
from l2m_core.tables.first_look import FirstLook
from l2m_core.tables.reading import read_table
from l2m_core.tables.table import Table

NOBODY = "nobody"  # an owner without cohorts or models: sees released models and what is shared
RESAMPLES = 8  # bootstrap samples of the cohort behind an uncertainty band
FEWEST_RESAMPLES = 4
ENOUGH_ROWS = 100  # of a sample, which has fewer than a large cohort, so that all fit into memory
FEWEST_ROWS = 40  # of a sample, where even the fewest samples of a very wide cohort would take too much with more
MEMORY_BYTES = 1_500_000_000  # kept of all cohorts and their resamples, in keys and values; one alone may have more
RESAMPLE_BYTES = 1_000_000_000  # of the resamples of one cohort
COUNCILS = 64  # fitted councils in memory, of some megabytes each at most
OTHERS_TRANSACTIONS = timedelta(minutes=1)  # what another process deleted may be dated so much before it can be seen
LOW = 15  # priority of the thread that fits them: 0 is a page's, 19 the lowest
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
    under_councils: dict[str, Conditioned] = field(default_factory=dict)

    def named(self, name: str) -> Conditioned:
        """The same memory under the name that another owner gave the cohort. Its numbers are shared, not copied."""
        cohort = self.memory.cohort
        if name == cohort.name:
            return self
        fresh = Conditioned(replace(self.memory, cohort=replace(cohort, name=name)))
        return self.under_other_names.setdefault(name, fresh)

    def with_council(self, council: Council) -> Conditioned:
        """The same memory, with its predictions blended with the council's: other numbers, so other views."""
        if council.recipe.changes_nothing:
            return self
        fresh = Conditioned(self.memory.with_council(council))
        return self.under_councils.setdefault(council.recipe.key, fresh)

    def forget(self, event_hashes: frozenset[str]) -> None:
        """Drops the views of these events, and all answers: they hold what was asked, but not for whom."""
        self.views.drop(lambda key: key[0] in event_hashes)
        self.memory.forget_answers()
        for other in (*self.under_other_names.values(), *self.under_councils.values()):
            other.forget(event_hashes)

    @property
    def key(self) -> tuple[str, str]:
        return self.memory.model.fingerprint, self.memory.cohort.content_hash


def _cohort_of(key: tuple[str, ...]) -> tuple[str, ...]:
    """What the memory of a cohort and those of its samples have in common."""
    return key[:2]


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
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="l2m-reader")  # somebody waits for what it does
        self._shares: dict[tuple[str, str], float] = {}
        self._drafts = BoundedCache(CELLS_OF_UPLOADS, weigh=lambda cohort: cohort.x.size)
        self._tables = BoundedCache(CELLS_OF_UPLOADS, weigh=lambda table: table.rows * len(table.names))
        self._memories = BoundedCache(MEMORY_BYTES, weigh=_nbytes, whose=_cohort_of)
        self._councils = BoundedCache(COUNCILS)
        self._found_councils = FoundCouncils(self.settings.councils_dir)
        self._fitters = ThreadPoolExecutor(1, thread_name_prefix="l2m-council", initializer=_stand_back)
        self._is_ending = threading.Event()
        self._swept = datetime.now(UTC)
        self._diagnostics = BoundedCache(32)
        self._paces = BoundedCache(32)
        self._first_looks = BoundedCache(32)

    # -- cohorts ----------------------------------------------------------------------------------------------------

    def table(self, name: str, data: bytes, key: tuple[Hashable, ...], sheet: str | None = None) -> Table:
        """An uploaded file, or a sheet of it, as a table of cells."""
        return self._tables.get(key, lambda: read_table(io.BytesIO(data), name=name, sheet=sheet))

    def turned_table(self, key: tuple[Hashable, ...], make: Callable[[], Table]) -> Table:
        """A table made of an uploaded one. `key` begins with that one's."""
        return self._tables.get(key, make)

    def known_table(self, key: tuple[Hashable, ...]) -> Table | None:
        """A table read earlier, if it is still in memory."""
        return self._tables.peek(key)

    def built(self, key: tuple[Hashable, ...], make: Callable[[], Cohort]) -> Cohort:
        """A cohort that is not stored yet. `key` holds everything that it is made from, its table's key first."""
        return self._drafts.get(key, make)

    def first_look(self, key: tuple[Hashable, ...], make: Callable[[], FirstLook]) -> FirstLook:
        """What a table's columns hold. `key` holds everything that this is made from, the table's key or the cohort's id
        first: who has another table of the same content is not shown this one's cells."""
        return self._first_looks.get(key, make)

    def forget_table(self, key: tuple[Hashable, ...]) -> None:
        """Drops an uploaded table that was stored or discarded, and what was built from it."""
        for kept in (self._tables, self._drafts, self._first_looks):
            kept.drop(lambda other: other[: len(key)] == key)

    def add_cohort(self, owner: str, cohort: Cohort) -> StoredCohort:
        """Store a cohort that is read back as the very same one; any other is refused, and nothing is stored."""
        schema, table = cohort.schema.to_yaml(), to_parquet(cohort.frame())
        restored = cohort.read_back(from_parquet(table), schema)
        stored = self.store.cohorts.add(owner, cohort.name, table, schema, cohort.content_hash)
        self._cohorts.get(stored.id, lambda: restored)  # opened next, most likely
        return stored

    def shown_cohort(self, owner: str, stored: StoredCohort) -> Cohort:
        """A cohort for somebody who looks at it, which the audit trail tells."""
        cohort = self.cohort(owner, stored)
        self.note_read(owner, "cohort read", stored.id)
        return cohort

    def note_read(self, owner: str, kind: str, subject: str) -> None:
        """An act in the audit trail, once an hour. What cannot be noted now (a full disk) can still be read."""
        try:
            self.store.audit.record_once_an_hour(owner, kind, subject)
        except StoreError as problem:
            logger.error("That something was read is not in the audit trail. %s", problem)

    def delete_cohort(self, owner: str, cohort_id: str) -> None:
        """Deletes a cohort, what is in memory of it, and what jobs keep of its patients."""
        self.store.cohorts.delete(owner, cohort_id)
        self.runner.forget_cohort(cohort_id)
        self.forget_deleted()

    def delete_step_throughs(self, owner: str, step_through_ids: Collection[str]) -> int:
        """Deletes step-throughs and what is in memory of them. Returns how many there were still."""
        gone = self.store.step_throughs.delete(owner, step_through_ids)
        self._forget_step_throughs(gone)
        return len(gone)

    def _forget_step_throughs(self, gone: Collection[DeletedStepThrough]) -> None:
        if not gone:
            return
        self.store.step_throughs.forget(one.id for one in gone)
        hashes = frozenset(link for one in gone for link in one.link_hashes)
        for kept in filter(None, map(self._memories.peek, self._memories.keys())):
            if isinstance(kept, Conditioned):
                kept.forget(hashes)
                continue
            for memory in kept:  # of bootstrap samples
                memory.forget_answers()

    def forget_deleted(self) -> None:
        """Drops from memory what is left of deleted cohorts and step-throughs, whichever process deleted them."""
        began = datetime.now(UTC)
        self._forget_step_throughs(self.store.step_throughs.deleted_since(self._swept - OTHERS_TRANSACTIONS))
        self._swept = began
        cohorts = self.store.cohorts
        self._cohorts.drop(cohorts.deleted(self._cohorts.keys()).__contains__)
        gone = cohorts.deleted({key[0] for key in self._first_looks.keys()})
        self._first_looks.drop(lambda key: key[0] in gone)
        contents = {key[1] for kept in (self._memories, self._councils) for key in kept.keys()}
        contents |= {*self._diagnostics.keys(), *self._found_councils.contents()}
        unused = contents - cohorts.still_stored(contents)
        for kept in (self._memories, self._councils):
            kept.drop(lambda key: key[1] in unused)
        self._diagnostics.drop(unused.__contains__)
        self._found_councils.drop(unused)

    def diagnostics(self, cohort: Cohort) -> Diagnostics:
        return self._diagnostics.get(cohort.content_hash, cohort.diagnostics)

    def pace(self, owner: str, stored: StoredCohort, model: L2M) -> Pace | None:
        """How quickly evidence can be gathered on this cohort; None while that is tried, in the background. NaN where the
        cohort cannot be read, which whoever starts is told."""
        cohort = self.cohort(owner, stored)
        key = (model.fingerprint, stored.content_hash)
        tried = self._paces.start(key, partial(_try_pace, model, cohort), self.background)
        return tried.result() if tried.done() else None

    # -- memories ---------------------------------------------------------------------------------------------------

    def conditioned(self, owner: str, stored: StoredCohort, model: L2M) -> Conditioned:
        """The model conditioned on this cohort. Each content is encoded once, whoever asks."""
        cohort = self.cohort(owner, stored)
        content = (model.fingerprint, stored.content_hash)
        return self._memories.get(content, partial(self._read, model, cohort)).named(stored.name)

    def begin_reading(self, owner: str, stored: StoredCohort, model: L2M) -> None:
        """Has the model read this cohort in the background, unless it has or does already. A refusal is kept for
        whoever asks for `conditioned`."""
        cohort = self.cohort(owner, stored)
        self._memories.start(
            (model.fingerprint, stored.content_hash), partial(self._read, model, cohort), self._readers
        )

    def has_read(self, stored: StoredCohort, model: L2M) -> bool:
        """Whether the model's memory of this cohort is kept already."""
        return self._memories.peek((model.fingerprint, stored.content_hash)) is not None

    def reading(self, stored: StoredCohort, model: L2M) -> float | None:
        """Which share of this cohort the model has read so far; None where it is not being read, or has been read."""
        content = (model.fingerprint, stored.content_hash)
        return self._shares.get(content, 0.0) if self._memories.is_being_made(content) else None

    def awaits_its_turn(self, stored: StoredCohort, model: L2M) -> bool:
        """Whether this cohort is to be read, and another one is read first: the reader reads one at a time."""
        content = (model.fingerprint, stored.content_hash)
        being_read = list(self._shares)
        return self._memories.is_being_made(content) and bool(being_read) and content not in being_read

    def _read(self, model: L2M, cohort: Cohort) -> Conditioned:
        content = (model.fingerprint, cohort.content_hash)

        def note_progress(share: float) -> None:
            self._shares[content] = share

        note_progress(0.0)
        try:
            conditioned = Conditioned(condition(model, cohort, note_progress))
        finally:
            self._shares.pop(content, None)
        self._begin_council(conditioned)
        return conditioned

    # -- councils ---------------------------------------------------------------------------------------------------

    def _begin_council(self, conditioned: Conditioned) -> None:
        """Fits the cohort's council in the background, where the installation wants one."""
        if self.settings.council and not self._is_ending.is_set():
            self._councils.start(conditioned.key, partial(self._fit_council, conditioned), self._fitters)

    def _fit_council(self, conditioned: Conditioned) -> Council:
        """The council that was found for this content already, in whatever process; else the one that is found now."""
        try:
            return self._known_council(conditioned) or self._find_council(conditioned)
        except Exception as failure:
            if not self._is_ending.is_set():
                logger.warning("A council could not be fitted (%s): the model answers alone.", type(failure).__name__)
            raise

    def _known_council(self, conditioned: Conditioned) -> Council | None:
        recipe = self._found_councils.known(conditioned.key)
        return None if recipe is None else _fit_again(conditioned.memory, recipe)

    def _find_council(self, conditioned: Conditioned) -> Council:
        with self._found_councils.turn(self._go_on):
            council = self._known_council(conditioned)  # another process may have found it meanwhile
            if council is None:
                council = conditioned.memory.fit_council(check=self._go_on)
                self._found_councils.keep(conditioned.key, council.recipe)
            return council

    def _go_on(self) -> None:
        if self._is_ending.is_set():
            raise CancelledError

    def with_council(self, conditioned: Conditioned) -> Conditioned:
        """With the cohort's council if it has been fitted by now; nobody waits for it."""
        council = self._councils.peek(conditioned.key) if self.settings.council else None
        return conditioned if council is None else conditioned.with_council(council)

    def is_fitting(self, stored: StoredCohort, model: L2M) -> bool:
        """Whether the cohort's council is being fitted: a step-through that begins now goes on without it."""
        return self._councils.is_being_made((model.fingerprint, stored.content_hash))

    def under(self, conditioned: Conditioned, recipe: Recipe | None) -> Conditioned:
        """With the council of this recipe, which is fitted again unless it is kept: a step-through goes on with the
        council that it began with, whatever the installation wants by now."""
        if recipe is None:
            return conditioned
        kept = self._councils.peek(conditioned.key)
        if kept is None or kept.recipe != recipe:
            key = (*conditioned.key, recipe.key)
            kept = self._councils.get(key, lambda: conditioned.memory.under(recipe).council)
        return conditioned.with_council(kept)

    def shut_down(self) -> None:
        """Ends the background's threads, once they have finished what they are at."""
        self._is_ending.set()
        for executor in (self._readers, self.background, self._fitters):
            executor.shutdown(wait=True, cancel_futures=True)

    def resampled(self, conditioned: Conditioned) -> tuple[CohortMemory, ...] | None:
        """Memories of bootstrap samples of the cohort. None while they are being made; empty where they would be too large."""
        memory = conditioned.memory
        count, rows = fitting_samples(memory.rows_read, memory.nbytes)
        if not count:
            return ()
        future = self._memories.start(
            (*conditioned.key, "resampled"), partial(memory.resampled, count, rows=rows), self.background
        )
        if not future.done():
            return None
        # Kept for the model alone and for every council: blending costs no reading.
        return tuple(resampled.with_council(memory.council) for resampled in future.result())


def fitting_samples(rows_read: int, nbytes: int) -> tuple[int, int | None]:
    """How many bootstrap samples of a cohort fit into memory, and of how many rows each (None: of all).

    nbytes: of the cohort's own memory. (0, None): not even a few small ones fit.
    """
    fitting = RESAMPLE_BYTES // max(1, nbytes // rows_read)  # rows of all samples together
    if fitting >= RESAMPLES * rows_read:
        return RESAMPLES, None
    # Rather fewer samples than smaller ones: the fewer rows they have, the less they tell of how whole cohorts would differ.
    count = max(FEWEST_RESAMPLES, min(RESAMPLES, fitting // ENOUGH_ROWS))
    rows = min(rows_read, fitting // count)
    return (count, rows) if rows >= FEWEST_ROWS else (0, None)


def _stand_back() -> None:
    """Has this thread, and those that it starts, run when no other wants the processor."""
    if sys.platform == "linux":  # elsewhere a thread has no priority of its own
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW)


def _fit_again(memory: CohortMemory, recipe: Recipe) -> Council | None:
    """The recipe's council; None where other versions of packages found it, or it cannot be fitted."""
    from l2m_core.council.fitting import rebuild, versions  # needs scikit-learn, which takes a second to import

    try:
        return rebuild(memory.cohort, recipe) if recipe.versions == versions() else None
    except InputError:
        return None


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


def _try_pace(model: L2M, cohort: Cohort) -> Pace:
    try:
        return measure_pace(model, cohort)
    except L2MError:
        return Pace(math.nan, math.nan, math.nan, math.nan)


def condition(model: L2M, cohort: Cohort, progress: Progress) -> CohortMemory:
    """Conditions on the cohort without its source table: the memory is shared by content, the table is its owner's alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # the notes travel with the memory and are shown on the page
        return model.condition(cohort.without_table(), progress=progress)


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
        old.shut_down()
        old.store.close()

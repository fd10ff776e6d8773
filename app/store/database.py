"""One engine for SQLite and PostgreSQL, its two kinds of transactions, and its errors in plain words.

A commit that returned is on disk: SQLite runs in WAL mode with `synchronous=FULL`, PostgreSQL with
`synchronous_commit=on` whatever the server's default. Writers take turns from their first statement on: SQLite by
`BEGIN IMMEDIATE`, PostgreSQL by a lock on the row or the name that they are about to change.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from app.private_files import narrow
from l2m_core.errors import ConfigError

from .errors import Busy, Conflict, MigrationNeeded, StoreError, Unreachable

SECONDS_TO_WAIT = 30
SECONDS_TO_CLOSE = 2
LOGGER = "sqlalchemy.engine.Engine.l2m"

logger = logging.getLogger("l2m.store")


class Database:
    """Transactions on one database. `reading` sees one consistent state; `writing` commits on leaving, or nothing."""

    def __init__(self, url: str, create: bool = True) -> None:
        """create: make a SQLite file that is not there. Otherwise it is refused, and nothing is made."""
        self.url = parse_url(url)
        if not create and self.is_sqlite:
            _require_file(Path(str(self.url.database)))
        self.engine = make_engine(self.url)
        self._one_writer = threading.Lock()
        self._reader = self.engine
        if not self.is_sqlite:
            self._reader = self.engine.execution_options(isolation_level="REPEATABLE READ")
        self._writer = self.engine.execution_options(begin_immediate=True)

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Session]:
        with errors_in_plain_words(), Session(self._reader) as session, session.begin():
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        with self._turn(), errors_in_plain_words(), Session(self._writer) as session, session.begin():
            yield session

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A writing transaction without the mapper, for migrations."""
        with self._turn(), errors_in_plain_words(), self._writer.begin() as connection:
            yield connection

    def empty_journal(self, patience: float = SECONDS_TO_WAIT) -> None:
        """Move SQLite's write-ahead log into the database's file, which is then whole without it.

        What was erased leaves the log too, where earlier pages stand until others take their place.
        patience: seconds to wait for readers, and to keep writers waiting. The log stays as it is after that.
        """
        if not self.is_sqlite or not self._journal_is_filled():
            return
        with self._turn(), errors_in_plain_words(), closing(self.engine.raw_connection()) as connection:
            cursor = connection.cursor()
            try:
                cursor.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                return
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorname", type(error).__name__)
            finally:
                cursor.execute(f"PRAGMA busy_timeout = {SECONDS_TO_WAIT * 1000}")
        raise StoreError(f"The database's log could not be emptied ({code}). Check the space on its disk.")

    def _journal_is_filled(self) -> bool:
        try:
            return os.stat(f"{self.url.database}-wal").st_size > 0
        except OSError:  # there is none
            return False

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """SQLite has one writer at a time and lets the others poll, up to 0.1 s apart and in no order. The threads of
        one process, which are most of them, wait here instead and are woken at once."""
        if not self.is_sqlite:
            yield
            return
        if not self._one_writer.acquire(timeout=SECONDS_TO_WAIT):
            raise Busy(f"The database was busy for {SECONDS_TO_WAIT} seconds. Try again.")
        try:
            yield
        finally:
            self._one_writer.release()

    def close(self) -> None:
        """Afterwards SQLite's file alone is whole, even while other connections are still open."""
        try:
            self.empty_journal(SECONDS_TO_CLOSE)
        except StoreError as problem:  # what was committed is safe in the log
            logger.warning("%s", problem)
        self.engine.dispose()


def lock_name(session: Session | Connection, name: str) -> None:
    """Keep others who lock the same name waiting until this transaction ends. SQLite's writers wait already."""
    connection = session.connection() if isinstance(session, Session) else session
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


def parse_url(text: str) -> URL:
    try:
        url = make_url(text)
    except ArgumentError:
        url = None
    if url is not None and url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url is not None and url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:"):
        return url.set(drivername="sqlite+pysqlite")
    # The text itself is not repeated: it may hold a password.
    raise ConfigError(
        "The database URL (L2M_DATABASE_URL) is not usable. Write sqlite:///path/to/file.sqlite3 or "
        "postgresql://user:password@host/name."
    )


def make_engine(url: URL) -> Engine:
    options: dict[str, Any] = {
        "hide_parameters": True,  # errors of SQLAlchemy show no values
        "logging_name": LOGGER.rpartition(".")[2],
        "pool_size": 10,
        "max_overflow": 20,
        "pool_timeout": SECONDS_TO_WAIT,
        "pool_pre_ping": True,
    }
    # At DEBUG, this logger prints every row that is read; a root logger set to DEBUG must not bring that about.
    logging.getLogger(LOGGER).setLevel(logging.WARNING)
    if url.get_backend_name() == "postgresql":
        engine = create_engine(url, **options)
        event.listen(engine, "connect", _set_up_postgresql)
        return engine
    _make_private_file(Path(str(url.database)))
    engine = create_engine(url, connect_args={"timeout": SECONDS_TO_WAIT}, **options)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _require_file(path: Path) -> None:
    if not path.exists():
        raise MigrationNeeded(
            f"There is no database file {path}. Check its name (--database, L2M_DATABASE_URL or L2M_DATA_DIR); "
            "`python -m app.store migrate` makes a new one."
        )


def _make_private_file(path: Path) -> None:
    """Only this user may read the database; SQLite gives its journal files the same rights.

    One that is there is never opened here: to close it again would take away the locks of all other connections of this
    process (as POSIX has it), and another process would then delete the journal that they still write to.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            with suppress(FileExistsError):  # another process was quicker
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        elif path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        elif not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        for end in ("", "-wal", "-shm"):
            narrow(path.with_name(path.name + end))
    except OSError as error:
        raise ConfigError(
            f"The database file {path} cannot be opened ({error.strerror}). "
            "Set L2M_DATA_DIR or L2M_DATABASE_URL to a place that this user may write to."
        ) from None


def _set_up_sqlite(connection: sqlite3.Connection, record: Any) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says, not where the driver guesses
    mode = _switch_to_wal(connection)
    if mode != "wal":
        raise StoreError(
            f"SQLite cannot keep its write-ahead log here (journal mode {mode}), as on some network folders. "
            "Set L2M_DATA_DIR to a local disk, or use PostgreSQL."
        )
    for setting in ("synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {setting}")


def _switch_to_wal(connection: sqlite3.Connection) -> str:
    """The very first switch needs the file alone and does not wait for it by itself."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("begin_immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _set_up_postgresql(connection: Any, record: Any) -> None:
    connection.autocommit = True
    connection.execute("SET synchronous_commit = on")
    connection.execute(f"SET lock_timeout = '{SECONDS_TO_WAIT}s'")
    connection.autocommit = False


@contextmanager
def errors_in_plain_words() -> Iterator[None]:
    """Database errors quote rows and parameters, so none leaves the store, not even as another error's context."""
    try:
        yield
        return
    except SQLAlchemyError as error:
        failure = _in_plain_words(error)
    try:
        raise failure
    finally:
        failure.__context__ = None  # set by raising, since the `with` around us is still handling the first error


def _in_plain_words(error: SQLAlchemyError) -> StoreError:
    cause = getattr(error, "orig", None)
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or type(error).__name__
    if isinstance(error, StaleDataError):
        return Conflict("This was changed elsewhere in the meantime. Read it again, then decide.")
    if isinstance(error, PoolTimeout) or code in ("55P03", "40001", "40P01") or code.startswith("SQLITE_BUSY"):
        return Busy(f"The database was busy for {SECONDS_TO_WAIT} seconds ({code}). Try again.")
    if code in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "53100"):
        return StoreError(f"The disk of the database is full ({code}). Free some space; nothing stored was lost.")
    if code.startswith(("SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC")):
        return StoreError(
            f"The disk of the database refused to be written to ({code}). See whether it is full or damaged."
        )
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StoreError(f"The database file is damaged ({code}). Restore a back-up.")
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")) or code == "25006":
        return StoreError(f"The database cannot be written to ({code}). Check the rights on its file and folder.")
    if isinstance(error, OperationalError) and not code.startswith("SQLITE"):
        return Unreachable(f"The database cannot be reached ({code}). Check that it runs, and L2M_DATABASE_URL.")
    if isinstance(error, IntegrityError):
        return Conflict(f"The database refused a change that contradicts what is stored ({code}).")
    return StoreError(f"The database refused the operation ({code}).")

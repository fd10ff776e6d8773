"""A copy of the whole database while it is in use: cohorts, step-throughs, evidence, jobs, audit trail."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

from .database import Database
from .errors import StoreError


def back_up(database: Database, target: Path) -> None:
    """Write one file: a SQLite database, or a PostgreSQL archive for `pg_restore`. It appears whole or not at all.

    It copies and does not interpret: a database of any revision is backed up, also before it is migrated.
    """
    if target.exists():
        raise StoreError(f"{target} exists already. Name a new file: a back-up never replaces another.")
    unfinished = target.with_name(target.name + ".unfinished")
    try:
        unfinished.unlink(missing_ok=True)
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL, 0o600))
        copy = _copy_sqlite if database.is_sqlite else _dump_postgresql
        copy(database, unfinished)
        _to_disk(unfinished)
        unfinished.rename(target)
        _to_disk(target.parent)
    except OSError as error:
        failure = error.strerror or type(error).__name__
    except sqlite3.Error as error:
        failure = getattr(error, "sqlite_errorname", type(error).__name__)
    else:
        return
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):
                unfinished.with_name(unfinished.name + end).unlink(missing_ok=True)
    if failure == "SQLITE_NOTADB":
        raise StoreError("The database file is none, or is damaged (SQLITE_NOTADB). Nothing was copied.")
    raise StoreError(
        f"The back-up {target} cannot be written ({failure}), so there is none. "
        "Free some space on its disk, or choose another place."
    )


def _copy_sqlite(database: Database, target: Path) -> None:
    there = Path(str(database.url.database)).absolute().as_uri() + "?mode=rw"  # never made by opening it
    with closing(sqlite3.connect(there, uri=True)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
        if copy.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise StoreError("The back-up is damaged, so the database may be. It was not kept.")


def _dump_postgresql(database: Database, target: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise StoreError("Backing up PostgreSQL needs its program pg_dump. Install the PostgreSQL client tools.")
    url = database.url.set(drivername="postgresql")
    environment = dict(os.environ)
    if url.password is not None:  # never on a command line, where other users could read it
        environment["PGPASSWORD"] = str(url.password)
    address = url._replace(password=None).render_as_string()
    command = [program, "--format=custom", f"--file={target}", f"--dbname={address}"]
    if subprocess.run(command, env=environment, capture_output=True, check=False).returncode != 0:
        raise StoreError("pg_dump could not copy the database. Run it by hand to see why.")


def _to_disk(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""The lock of the queue of jobs, which one process holds at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app import file_lock
from app.store import StoreError


@contextmanager
def queue_locked(folder: Path, patience: float) -> Iterator[bool]:
    """folder: of the jobs. Yields whether the lock was got within `patience` seconds."""
    try:
        file = (folder / "queue.lock").open("a+b")
    except OSError as error:
        raise StoreError(f"The folder of jobs cannot be written to ({error.strerror}).") from error
    with file, file_lock.locked(file, patience) as mine:
        yield mine

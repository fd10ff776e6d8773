"""Tables that grow a record at a time and survive being killed: JSON lines, keyed, appended to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from l2m_core.paths import naming

try:
    import fcntl
except ImportError:  # Windows, where the engines write from one process
    fcntl = None  # type: ignore[assignment]


class ResumableTable:
    """Records in a file. Of two with the same key the later one counts; a line that a crash cut short is skipped."""

    def __init__(self, path: Path, keys: Sequence[str]):
        self.path = Path(path)
        self.keys = tuple(keys)
        self.records: dict[tuple, dict[str, Any]] = {}
        for record in read_lines(self.path):
            self.records[self.key(record)] = record

    def key(self, record: Mapping[str, Any]) -> tuple:
        return tuple(record.get(name) for name in self.keys)

    def has(self, record: Mapping[str, Any]) -> bool:
        """Finished, without an error, and of the same `data`, where a record says of what data it is: a file that has changed
        since makes it another piece of work."""
        kept = self.records.get(self.key(record), {"error": "absent"})
        return not kept.get("error") and kept.get("data", record.get("data")) == record.get("data")

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """All together, one process at a time, so that several can share a file."""
        lines = ""
        for record in records:
            self.records[self.key(record)] = dict(record)
            lines += json.dumps(record) + "\n"
        if not lines:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            lock(descriptor)  # until it is closed: another's lines, half written, would look like a cut
            size = os.fstat(descriptor).st_size
            cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            left = (("\n" if cut else "") + lines).encode()
            with naming(self.path):
                while left:  # of a disk that fills up, a write may take a part and say nothing
                    left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)


def lock(descriptor: int) -> None:
    """Waits until no other process holds the file."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole records of a file; none if there is no file."""
    if not Path(path).is_file():
        return []
    records = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records

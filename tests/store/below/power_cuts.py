"""The states in which a power cut can have left the disk, made from a record of all that was written and synced.

A disk that keeps its word has all that was synced; of what was written since, anything: each write may be there or not, and
the last one may be torn between two sectors. A disk that lies about syncs may lack any write at all.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECTOR = 512


@dataclass(frozen=True)
class Operation:
    kind: str  # W: write, S: sync, T: truncate to the offset, U: unlink
    name: str
    offset: int
    content: bytes


@dataclass
class File:
    """durable: as it is after any cut; pending: what was done since, of which anything may be there."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Operation] = field(default_factory=list)
    is_there: bool = True


def read(record: Path) -> list[Operation]:
    return list(_operations(record.read_bytes()))


def _operations(data: bytes) -> Iterator[Operation]:
    place = 0
    while place < len(data):
        kind, size = struct.unpack_from("<cH", data, place)
        place += 3
        name = Path(data[place : place + size].decode()).name
        offset, length = struct.unpack_from("<qq", data, place + size)
        place += size + 16
        content = data[place : place + length] if kind == b"W" else b""
        place += len(content)
        yield Operation(kind.decode(), name, offset, content)


def acknowledged(operations: list[Operation]) -> list[dict[str, Any]]:
    """What had been acknowledged by then."""
    lines = b"".join(operation.content for operation in operations if operation.name.endswith(".acknowledged"))
    return [json.loads(line) for line in lines.splitlines()]


def leave(folder: Path, begun: dict[str, bytes], done: list[Operation], draw: random.Random, lies: bool) -> None:
    """Writes the files as a cut just after these operations may leave them. begun: files as they were before."""
    files = {name: File(bytearray(content)) for name, content in begun.items()}
    for operation in done:
        if operation.name.endswith(".acknowledged") or operation.name.endswith("-shm"):
            continue
        file = files.setdefault(operation.name, File())
        if operation.kind == "U":
            files[operation.name] = File(is_there=False)
        elif operation.kind == "S" and not lies:
            for pending in file.pending:
                apply(file.durable, pending)
            file.pending = []
        elif operation.kind != "S":
            file.is_there = True
            file.pending.append(operation)
    for name, file in files.items():
        content = bytearray(file.durable)
        kept = [pending for pending in file.pending if draw.random() < 0.7]
        for number, pending in enumerate(kept):
            is_torn = number == len(kept) - 1 and draw.random() < 0.5
            apply(content, torn(pending, draw) if is_torn else pending)
        if file.is_there:
            (folder / name).write_bytes(content)


def apply(content: bytearray, operation: Operation) -> None:
    if operation.kind == "T":
        del content[operation.offset :]
        content.extend(bytes(operation.offset - len(content)))
        return
    if len(content) < operation.offset:
        content.extend(bytes(operation.offset - len(content)))
    content[operation.offset : operation.offset + len(operation.content)] = operation.content


def torn(operation: Operation, draw: random.Random) -> Operation:
    """Only so many of its sectors."""
    sectors = len(operation.content) // SECTOR
    kept = operation.content[: SECTOR * draw.randint(0, sectors)]
    return Operation(operation.kind, operation.name, operation.offset, kept) if operation.kind == "W" else operation

"""What a piece of the program touches outside itself while it works: files it opens, makes or moves, programs, addresses."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = tuple(os.path.realpath(place) for place in (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])))
TOUCHING = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.symlink",
    "os.link",
    "os.truncate",
    "shutil.copyfile",
    "shutil.rmtree",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "socket.connect",
    "urllib.Request",
)
_watching: list[list[tuple[str, str]]] = []
_hooked = False


def _listen(event: str, arguments: tuple) -> None:
    if _watching and event in TOUCHING:
        for argument in arguments[:2] if event in ("os.rename", "os.link", "os.symlink") else arguments[:1]:
            if isinstance(argument, str | bytes | os.PathLike):
                _watching[-1].append((event, os.fsdecode(argument)))


@contextmanager
def watched() -> Iterator[list[tuple[str, str]]]:
    """What was touched, as (kind, path). A hook of the interpreter cannot be taken off: it stays, and is silent."""
    global _hooked
    if not _hooked:
        sys.addaudithook(_listen)
        _hooked = True
    _watching.append([])
    try:
        yield _watching[-1]
    finally:
        _watching.pop()


def outside(found: list[tuple[str, str]], *allowed: Path) -> list[tuple[str, str]]:
    """What lies neither within the program and its libraries (to read) nor in the allowed folders."""
    kept = (*PROGRAM, *(str(folder.resolve()) for folder in allowed))
    return [
        (event, path)
        for event, path in found
        if not os.path.realpath(path.replace("\0", "")).startswith(tuple(f"{place}{os.sep}" for place in kept))
    ]

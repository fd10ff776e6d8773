"""Heads of chains, signed, in an append-only file that may lie where nobody who can change the database can write.

Whoever may change everything in a database can write its chains anew, hashes included. They cannot write the heads anew
that were signed before: for that they would need the key and the file. Each line is JSON,

    {"at": ..., "heads": {chain: [length, hash], ...}, "previous": the signature of the line before, "signature": ...}
    signature = HMAC-SHA256(key, canonical JSON of all the rest)

so that no line can be changed, moved or taken out but from the end; and a step-through that is finished must have a head.
A line that is no JSON is one whose writing broke off: the next one goes on from the one before it.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from app.file_lock import locked
from app.private_files import SECRET_BYTES, create_secret, narrow
from app.settings import AppSettings
from l2m_core.errors import ConfigError

from . import chain, times
from .errors import StoreError, StoreInputError

Heads = Mapping[str, tuple[chain.Head, ...]]  # by step-through id, and "audit"
PATIENCE = 10.0  # seconds to wait for another process that writes to the file
FIRST_START = 300  # seconds: a key younger than that was made by this start, perhaps in another process
TAIL = 65_536  # bytes at the end of the file among which its last line is looked for first


logger = logging.getLogger("l2m.store")


@dataclass(frozen=True)
class KnownHeads:
    """What is known from elsewhere of the heads of chains, and what was wrong with it.

    are_all: whether every step-through that is finished must have one. since: when the first one was signed.
    """

    heads: Heads = field(default_factory=dict)
    are_all: bool = False
    since: str = ""
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Line:
    at: str
    heads: dict[str, chain.Head]
    previous: str
    signature: str
    begun_again: bool


@dataclass(frozen=True)
class SignedHeads:
    """The file, and the key that signs its lines."""

    file: Path
    key: bytes = field(repr=False)
    key_is_older: bool = False
    """Whether the key had been there before: a file that is begun with it takes the place of one that is gone."""

    @classmethod
    def of(cls, settings: AppSettings, create_key: bool = True) -> SignedHeads:
        """As an installation's settings say. create_key: make the data folder's own key where there is none."""
        path = settings.heads_key
        try:
            if create_key and settings.heads_key_is_ours and not path.exists():
                create_secret(path)
            key, age = path.read_bytes(), time.time() - path.stat().st_mtime
        except OSError as error:
            raise ConfigError(
                f"The key {path}, which signs the heads of step-throughs, cannot be read ({error.strerror}). "
                "Check its rights, or L2M_HEADS_KEY_FILE."
            ) from None
        if len(key) < SECRET_BYTES:
            raise ConfigError(
                f"The key {path}, which signs the heads of step-throughs, is shorter than {SECRET_BYTES} bytes. "
                "Restore it from where it is kept; heads signed with another one cannot be checked any more."
            )
        narrow(path)
        return cls(settings.heads_file, key, settings.heads_key_is_ours and age > FIRST_START)

    @property
    def exists(self) -> bool:
        return self.file.exists()

    def append(self, heads: Mapping[str, chain.Head]) -> None:
        """Signs them in one line, which is on disk when this returns."""
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "a+b") as file, locked(file, PATIENCE) as mine:
                if not mine:
                    raise StoreError(f"The file of signed heads {self.file} is locked by another program.")
                self._append(file, heads)
        except OSError as error:
            raise StoreError(
                f"The file of signed heads {self.file} cannot be written ({error.strerror}). Check its place and rights."
            ) from None

    def _append(self, file: IO[bytes], heads: Mapping[str, chain.Head]) -> None:
        last, is_whole, is_empty = self._last(file)
        if last is None and not is_empty:
            raise StoreError(
                f"The file of signed heads {self.file} holds no line that is signed with this key, so none is added. "
                "Keep it, and name another (L2M_HEADS_FILE)."
            )
        said: dict[str, Any] = {
            "at": times.to_text(times.now()),
            "heads": {name: list(head) for name, head in heads.items()},
            "previous": "" if last is None else last.signature,
        }
        if is_empty and self.key_is_older:
            said["begun again"] = True
        said["signature"] = self._sign(said)
        file.write((b"" if is_whole else b"\n") + chain.canonical_json(said).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())

    def _last(self, file: IO[bytes]) -> tuple[_Line | None, bool, bool]:
        """The last line that is ours; whether the file ends with a line's end; whether it is empty."""
        size = file.seek(0, os.SEEK_END)
        for start in (max(0, size - TAIL), 0):
            file.seek(start)
            content = file.read()
            for text in reversed(content.split(b"\n")[1 if start else 0 :]):
                line = self._read(text)
                if line is not None:
                    return line, content.endswith(b"\n"), False
        return None, content.endswith(b"\n") or not content, not content

    def _sign(self, said: Mapping[str, Any]) -> str:
        covered = {name: value for name, value in said.items() if name != "signature"}
        return hmac.new(self.key, chain.canonical_json(covered).encode(), sha256).hexdigest()

    def _read(self, text: bytes) -> _Line | None:
        """None where it is not ours, whole and unchanged."""
        try:
            said = json.loads(text)
            if not hmac.compare_digest(str(said["signature"]), self._sign(said)):
                return None
            heads = {name: chain.Head(int(length), str(digest)) for name, (length, digest) in said["heads"].items()}
            return _Line(said["at"], heads, said["previous"], said["signature"], bool(said.get("begun again")))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            return None

    def read(self) -> KnownHeads:
        """All heads of the file. What was changed in it is a fault; heads after it count as well."""
        try:
            content = self.file.read_bytes()
        except OSError as error:
            raise StoreInputError(
                f"The file of signed heads {self.file} cannot be read ({error.strerror}). Restore it from a copy."
            ) from None
        heads: dict[str, tuple[chain.Head, ...]] = {}
        faults, notes, unread = [], [], []
        previous, latest, since = "", "", ""
        for number, text in enumerate(content.split(b"\n"), 1):
            line = self._read(text) if text else None
            if line is None:
                unread += [number] if text else []
                continue
            if line.previous != previous:
                faults.append(f"line {number} of the signed heads does not follow the line before it")
            if line.at < latest:
                notes.append(f"line {number} of the signed heads is dated before the one before it")
            if line.begun_again:
                notes.append(f"the file of signed heads was begun again at {line.at}: what was signed before is gone")
            for name, head in line.heads.items():
                heads[name] = (*heads.get(name, ()), head)
            previous, latest, since, broken_off = line.signature, line.at, since or line.at, unread
            unread = []
            if broken_off and not faults:
                notes.append(
                    f"line {broken_off[0]} of the signed heads broke off while it was written; nothing is lost"
                )
        if not heads:
            raise StoreInputError(
                f"The file of signed heads {self.file} holds no line that is signed with this key: it was replaced or "
                "emptied, or the key is another one. Restore it from a copy."
            )
        faults += [f"line {number} of the signed heads is malformed, altered or signed otherwise" for number in unread]
        return KnownHeads(heads, True, since, tuple(faults), tuple(notes))


def read_heads(text: str) -> KnownHeads:
    """Heads that `python -m app.store heads` printed."""
    try:
        heads = {name: (chain.Head(int(head["length"]), str(head["hash"])),) for name, head in json.loads(text).items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        heads = {}
    if not heads:
        raise StoreInputError("The file of heads is not one that `python -m app.store heads` wrote, or holds no heads.")
    return KnownHeads(heads)


class Keeper:
    """Signs heads as they come. What cannot be written now is tried again with the next ones, and by `try_again`."""

    def __init__(self, signed: SignedHeads | None) -> None:
        self._signed = signed
        self._waiting: list[Mapping[str, chain.Head]] = []
        self._lock = threading.Lock()

    def keep(self, heads: Mapping[str, chain.Head]) -> None:
        """Never raises: what the heads are about is stored already."""
        if self._signed is None or not heads:
            return
        with self._lock:
            self._waiting.append(heads)
        self.try_again()

    def try_again(self) -> None:
        with self._lock:
            while self._signed is not None and self._waiting:
                try:
                    self._signed.append(self._waiting[0])
                except StoreError as problem:
                    logger.error("%d heads of chains are not signed yet. %s", len(self._waiting), problem)
                    return
                del self._waiting[0]

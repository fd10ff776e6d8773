"""What somebody does in an app whose SQLite lies over faults: uploads, steps, exports. Run with the shim preloaded:

    python -m tests.store.below.work MODE FOLDER ROUNDS

MODE is `record`, `write`, `memory` or `room`. FOLDER holds a migrated `template.sqlite3`. One JSON line for each round is
printed.
"""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import resource
import shutil
import sys
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from app.store import Store, StoreError, export_chain, import_chain
from app.store.cohorts import to_parquet
from l2m_core.cohort import Cohort
from tests.store.harness import OWNER, new_uuid

SHIM = ctypes.CDLL(None)
IO, MEMORY = 1, 2
MOST_ROOM = 50_000_000  # bytes, with which all of it succeeds
ERRORS = (errno.EIO, errno.ENOSPC)
WENT_ON = 3  # exit status of a process that had too little memory for some of it
ROWS, MANY_ROWS = 60, 20_000


@dataclass
class Acknowledged:
    """What was acknowledged, each with a digest of its content; and what else came out than a refusal in words."""

    things: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0
    surprises: list[str] = field(default_factory=list)
    tell: Callable[[dict[str, Any]], None] = lambda thing: None

    def add(self, thing: dict[str, Any]) -> None:
        self.things.append(thing)
        self.tell(thing)

    def attempt(self, action: Callable[[], Any], times: int = 2) -> Any:
        """What the action returns, at the first or, where that was refused, at the next time; None where none did."""
        for _ in range(times):
            try:
                return action()
            except (StoreError, MemoryError):
                self.refused += 1
            except Exception as surprise:
                self.surprises.append(f"{type(surprise).__name__}: {surprise} {traceback.format_exc()}")
        return None


def digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def live(store: Store, told: Acknowledged, rounds: int = 1, rows: int = ROWS) -> None:
    """Uploads a cohort, steps through a patient and exports the trace, round after round; then deletes the first cohort."""
    cohorts = []
    for number in range(rounds):
        cohort = told.attempt(lambda number=number: upload(store, number, rows))
        if cohort is None:
            continue
        told.add({"what": "cohort", "id": cohort.id, "hash": cohort.content_hash, "rows": rows})
        cohorts.append(cohort)
        chosen = cohort.id
        begun = told.attempt(lambda chosen=chosen: store.step_throughs.create(OWNER, chosen, "model-1"))
        if begun is None:
            continue
        told.add({"what": "step-through", "id": begun.id})
        step(store, told, begun.id)
        told.attempt(lambda begun=begun: export(store, begun.id))
        if number % 3 == 2:
            told.attempt(store.make_file_whole)
    if len(cohorts) > 1:
        told.add({"what": "deleting", "id": cohorts[0].id})
    if len(cohorts) > 1 and told.attempt(lambda: delete(store, cohorts[0].id)):
        told.add({"what": "deleted", "id": cohorts[0].id})


def upload(store: Store, number: int, rows: int) -> Any:
    """As the page does it: the file read, its cohort made, and the table stored."""
    lines = (f"{1 + row % 7}.5,{40 + row % 50},{'yes' if row % 3 else 'no'}\n" for row in range(rows))
    cohort = Cohort.from_csv(io.StringIO("lactate,age,died\n" + "".join(lines)), outcome="died", name=f"ward {number}")
    return store.cohorts.add(
        OWNER, cohort.name, to_parquet(cohort.frame()), cohort.schema.to_yaml(), cohort.content_hash
    )


def step(store: Store, told: Acknowledged, identifier: str, steps: int = 4) -> None:
    """Each step as a page takes it: on the length that is known, and again where it was refused."""
    for number in range(steps):
        event, payload = new_uuid(), {"feature": "lactate", "value": number + 0.5, "text": "x" * (number * 997 % 5000)}

        def append(event: str = event, payload: dict[str, Any] = payload) -> Any:
            length = store.step_throughs.get(OWNER, identifier).length
            return store.step_throughs.append_event(OWNER, identifier, event, length, "observe", payload)

        if told.attempt(append) is not None:
            told.add({"what": "event", "id": event, "of": identifier, "digest": digest(payload)})


def export(store: Store, identifier: str) -> None:
    """What is exported is a whole chain, or nothing."""
    step_through, events = store.step_throughs.read(OWNER, identifier)
    assert len(import_chain(export_chain(step_through, events))) == step_through.length


def delete(store: Store, cohort: str) -> bool:
    store.cohorts.delete(OWNER, cohort)
    return True


def lost(store: Store, things: list[dict[str, Any]]) -> list[str]:
    """What was acknowledged and is not there, or is not as it was; and what `verify` finds."""
    found = [*store.verify().faults, *(verdict.reason for verdict in store.verify().broken)]
    deleting = {thing["id"] for thing in things if thing["what"] == "deleting"}  # it may be there, or not any more
    for thing in things:
        try:
            if thing["what"] == "cohort" and thing["id"] not in deleting:
                assert len(store.cohorts.frame(OWNER, thing["id"])) == thing["rows"]
                assert store.cohorts.get(OWNER, thing["id"]).content_hash == thing["hash"]
            elif thing["what"] == "deleted":
                assert store.cohorts.get(OWNER, thing["id"]).deleted_at is not None
            elif thing["what"] == "step-through":
                assert store.step_throughs.verify(OWNER, thing["id"]).intact
            elif thing["what"] == "event":
                events = store.step_throughs.events(OWNER, thing["of"])
                assert digest(next(e.payload for e in events if e.event_id == thing["id"])) == thing["digest"]
        except (StoreError, AssertionError, StopIteration):
            found.append(f"{thing['what']} was lost")
    return found


def fresh(folder: Path) -> Path:
    path = folder / "store.sqlite3"
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    shutil.copy(folder / "template.sqlite3", path)
    path.chmod(0o600)
    return path


def with_faults(kind: int, folder: Path, rounds: int) -> None:
    """In each round another one of the writes and syncs, or of the allocations, fails: once or from then on, by turns."""
    calls = a_round(kind, folder, nth=10**9, number=0)["calls"]
    for number in range(rounds):
        print(json.dumps(a_round(kind, folder, 1 + number * calls // rounds, number)), flush=True)


def a_round(kind: int, folder: Path, nth: int, number: int) -> dict[str, Any]:
    path, told = fresh(folder), Acknowledged()
    with closing(Store(f"sqlite:///{path}")) as store:
        live(store, Acknowledged())  # connections are open, and imports are done
        if not SHIM.faults_arm(kind, ctypes.c_long(nth), ERRORS[number % 2], int(number % 3 == 0)):
            raise SystemExit("SQLite's library was not found below Python")
        live(store, told)
        calls = SHIM.faults_disarm()
    with closing(Store(f"sqlite:///{path}")) as after:
        missing = lost(after, told.things)
        step(after, told, after.step_throughs.list(OWNER)[0].id, 1)
        missing += lost(after, told.things)
    report = {"reached": calls >= nth, "calls": calls, "refused": told.refused, "things": len(told.things)}
    return {**report, "lost": missing, "surprises": told.surprises}


def with_little_room(folder: Path, rounds: int) -> None:
    """In each round the process may have a little more memory than it has: from none to enough."""
    for number in range(rounds):
        path, told = fresh(folder), folder / "told"
        told.write_bytes(b"")
        child = os.fork()
        if child == 0:
            in_a_room_of(MOST_ROOM * number // rounds, path, told)
        status = os.waitpid(child, 0)[1]
        lines = [json.loads(line) for line in told.read_bytes().splitlines()]
        with closing(Store(f"sqlite:///{path}")) as after:
            missing = lost(after, lines)
        print(json.dumps({"status": status, "things": len(lines), "lost": missing}), flush=True)


def in_a_room_of(size: int, path: Path, told: Path) -> NoReturn:
    handle = os.open(told, os.O_WRONLY | os.O_APPEND)
    acknowledged = Acknowledged(tell=lambda thing: os.write(handle, json.dumps(thing).encode() + b"\n") and None)
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + size, has + size))
    try:
        store = acknowledged.attempt(lambda: Store(f"sqlite:///{path}"))
        if store is not None:
            live(store, acknowledged, rows=MANY_ROWS)
        os._exit(0 if not acknowledged.refused and not acknowledged.surprises else WENT_ON)
    except BaseException:
        os._exit(4)


def recorded(folder: Path, rounds: int) -> None:
    """Works without a fault while all that reaches the disk is recorded, acknowledgements in between."""
    path = fresh(folder)
    handle = os.open(folder / "all.acknowledged", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    SHIM.faults_record(str(folder / "recorded").encode())
    store = Store(f"sqlite:///{path}")
    told = Acknowledged(tell=lambda thing: os.write(handle, json.dumps(thing).encode() + b"\n") and None)
    live(store, told, rounds)
    store.close()
    report = {"refused": told.refused, "things": len(told.things), "surprises": told.surprises}
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    mode, place, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if mode == "record":
        recorded(place, count)
    elif mode == "room":
        with_little_room(place, count)
    else:
        with_faults({"write": IO, "memory": MEMORY}[mode], place, count)

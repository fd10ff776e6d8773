"""SQLite over a disk and a memory that fail: nothing acknowledged is lost, and nothing half-written is read.

A small library between SQLite and the operating system (`tests/store/below/shim.c`) lets any write, sync or allocation fail,
and records all that is written, from which the states after a power cut are made.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from app.store import Store, StoreError
from tests.figures import Keep
from tests.prerequisites import REPOSITORY, c_compiler
from tests.store.below import power_cuts, work
from tests.store.harness import OWNER

SOURCE = Path(__file__).parent / "below" / "shim.c"
ROUNDS = 100


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run([c_compiler(), "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def run(shim: Path, folder: Path, template: Path, mode: str, rounds: int) -> list[dict]:
    """A line for each round."""
    shutil.copy(template, folder / "template.sqlite3")
    command = [sys.executable, "-m", "tests.store.below.work", mode, str(folder), str(rounds)]
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


# -- calls that fail --------------------------------------------------------------------------------------------------


def check(lines: list[dict], rounds: int) -> tuple[int, int]:
    """How many things were acknowledged, and how many refusals there were."""
    assert len(lines) == rounds and all(line["reached"] for line in lines)
    assert [surprise for line in lines for surprise in line["surprises"]] == []
    assert [fault for line in lines for fault in line["lost"]] == []
    return sum(line["things"] for line in lines), sum(line["refused"] for line in lines)


@pytest.mark.parametrize("mode", ["write", "memory"])
def test_a_call_that_fails_loses_nothing_acknowledged(
    shim: Path, tmp_path: Path, migrated_sqlite: Path, mode: str
) -> None:
    things, refused = check(run(shim, tmp_path, migrated_sqlite, mode, 9), 9)
    assert things > 30 and refused > 9


@pytest.mark.reliability
@pytest.mark.parametrize("mode", ["write", "memory"])
def test_a_hundred_calls_that_fail_lose_nothing_acknowledged(
    shim: Path, tmp_path: Path, migrated_sqlite: Path, figure: Keep, mode: str
) -> None:
    things, refused = check(run(shim, tmp_path, migrated_sqlite, mode, ROUNDS), ROUNDS)
    what = {"write": "write or sync", "memory": "allocation"}[mode]
    name = f"100 times another {what} of SQLite fails, during upload, steps and export"
    figure(name, "0 acknowledged lost, each refusal in words", f"0 of {things:,} lost, {refused} refusals", True)


def check_rooms(lines: list[dict], rounds: int) -> str:
    assert len(lines) == rounds
    assert [fault for line in lines for fault in line["lost"]] == []
    whole = sum(line["status"] == 0 for line in lines)
    went_on = sum(os.WIFEXITED(line["status"]) and os.WEXITSTATUS(line["status"]) == work.WENT_ON for line in lines)
    assert 0 < whole < rounds, "from too little memory to enough"
    things = sum(line["things"] for line in lines)
    return f"0 of {things:,} lost; {whole} had enough, {went_on} went on without, {rounds - whole - went_on} ended"


def test_too_little_memory_loses_nothing_acknowledged(shim: Path, tmp_path: Path, migrated_sqlite: Path) -> None:
    check_rooms(run(shim, tmp_path, migrated_sqlite, "room", 4), 4)


@pytest.mark.reliability
def test_a_hundred_times_too_little_memory_loses_nothing_acknowledged(
    shim: Path, tmp_path: Path, migrated_sqlite: Path, figure: Keep
) -> None:
    measured = check_rooms(run(shim, tmp_path, migrated_sqlite, "room", ROUNDS), ROUNDS)
    figure(
        "100 sizes of a process's memory, from none to enough, during upload, steps and export",
        "0 acknowledged lost",
        measured,
        True,
    )


# -- power cuts -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lived(shim: Path, tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> tuple[dict, list]:
    """The database as it was, and all that was then done to the disk while somebody worked."""
    folder = tmp_path_factory.mktemp("lived")
    (line,) = run(shim, folder, migrated_sqlite, "record", 5)
    assert line["refused"] == 0 and line["surprises"] == [] and line["things"] > 25
    operations = power_cuts.read(folder / "recorded")
    kinds = {(operation.kind, operation.name) for operation in operations}
    assert {
        ("W", "store.sqlite3"),
        ("W", "store.sqlite3-wal"),
        ("S", "store.sqlite3"),
        ("S", "store.sqlite3-wal"),
    } <= kinds
    assert len(power_cuts.acknowledged(operations)) == line["things"]
    return {"store.sqlite3": migrated_sqlite.read_bytes()}, operations


def cut(lived: tuple[dict, list], folder: Path, seed: int, lies: bool) -> tuple[int, str]:
    """How many things had been acknowledged, and what became of the store: "whole", or how its damage was named."""
    begun, operations = lived
    draw = random.Random(seed)
    done = operations[: draw.randrange(1, len(operations) + 1)]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    power_cuts.leave(folder, begun, done, draw, lies)
    things = power_cuts.acknowledged(done)
    try:
        with closing(Store(f"sqlite:///{folder / 'store.sqlite3'}")) as store:
            if not lies:
                assert work.lost(store, things) == []
            elif not store.verify().intact:
                return len(things), "named by verify"
            for step_through in store.step_throughs.list(OWNER):
                work.export(store, step_through.id)
            for cohort in store.cohorts.list(OWNER):
                assert len(store.cohorts.frame(OWNER, cohort.id)) == work.ROWS
    except StoreError:
        assert lies
        return len(things), "refused in words"
    return len(things), "whole"


def test_a_power_cut_loses_nothing_acknowledged(lived: tuple[dict, list], tmp_path: Path) -> None:
    counts = [cut(lived, tmp_path / "after", seed, lies=False)[0] for seed in range(12)]
    assert max(counts) > 20


@pytest.mark.reliability
def test_a_hundred_power_cuts_lose_nothing_acknowledged(lived: tuple[dict, list], tmp_path: Path, figure: Keep) -> None:
    counts = [cut(lived, tmp_path / "after", seed, lies=False)[0] for seed in range(ROUNDS)]
    check = "100 power cuts: unsynced writes dropped, torn between sectors (sqlite)"
    figure(check, "0 acknowledged lost, nothing half-written read", f"0 of {sum(counts)} lost", True)


def test_after_a_lying_sync_nothing_half_written_is_read(lived: tuple[dict, list], tmp_path: Path) -> None:
    ends = [cut(lived, tmp_path / "after", seed, lies=True)[1] for seed in range(12)]
    assert set(ends) <= {"whole", "named by verify", "refused in words"} and len(set(ends)) > 1


@pytest.mark.reliability
def test_after_a_hundred_lying_syncs_nothing_half_written_is_read(
    lived: tuple[dict, list], tmp_path: Path, figure: Keep
) -> None:
    ends = [cut(lived, tmp_path / "after", seed, lies=True)[1] for seed in range(ROUNDS)]
    counted = ", ".join(f"{ends.count(end)} {end}" for end in ("whole", "named by verify", "refused in words"))
    check = "100 power cuts over a disk that lies about syncs (sqlite)"
    figure(check, "whole chains, or damage that is named; nothing half-written read", counted, True)
    assert len(ends) == ROUNDS

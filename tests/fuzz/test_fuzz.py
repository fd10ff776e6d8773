"""Damaged files of every kind are read or refused in words: a few now, and for ten minutes where that is asked for.

A find of the long run is kept in `finds`, as `<kind>-<what it is>`; each is read again with every run of the tests.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from l2m_core.errors import L2MError
from tests.fuzz.targets import Target, targets

FINDS = Path(__file__).parent / "finds"
KINDS = ("table", "schema", "trace", "settings", "model", "weights")
SHORT = 40  # cases of each kind
MINUTES = 10
SLOWEST = 5.0  # seconds of processor


@pytest.fixture(scope="module")
def readers(tmp_path_factory) -> dict[str, Target]:
    found = targets(tmp_path_factory.mktemp("fuzz"))
    assert set(found) == set(KINDS)
    return found


def is_refused(target: Target, data: bytes) -> bool:
    """Whether it was refused; anything but a refusal in words is a find."""
    try:
        target.read(data)
    except L2MError as refusal:
        assert str(refusal).strip()
        return True
    return False


def is_refused_soon(target: Target, data: bytes) -> bool:
    """Much time is a find too: in the long run only, as machines differ."""
    began = time.process_time()
    refused = is_refused(target, data)
    took = time.process_time() - began
    assert took < SLOWEST, f"it took {took:.1f} s"
    return refused


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_damage_begins_with_is_read(readers, kind):
    target = readers[kind]
    assert target.seeds
    refused = [number for number, seed in enumerate(target.seeds) if is_refused(target, seed)]
    assert len(refused) < len(target.seeds)


@pytest.mark.parametrize("find", sorted(FINDS.iterdir()), ids=lambda path: path.name)
def test_what_was_found_once_is_read_or_refused(readers, find):
    """A model's deep brackets, too: read without a bound they took seconds and ended in a RecursionError."""
    is_refused(readers[find.name.partition("-")[0]], find.read_bytes())


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_read_or_refused(readers, kind):
    for number in range(SHORT):
        is_refused(readers[kind], readers[kind].case(Random(f"{kind} {number}")))


@pytest.mark.reliability
@pytest.mark.timeout(3600)
def test_damage_for_ten_minutes(readers, figure):
    began, number = time.time(), time.time_ns()
    tried: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    finds: list[str] = []
    while time.time() - began < 60 * MINUTES:
        for kind, target in readers.items():
            number += 1
            data = target.case(Random(f"{kind} {number}"))
            tried[kind] += 1
            try:
                refused[kind] += is_refused_soon(target, data)
            except Exception as error:
                finds.append(keep(kind, data, error))
    figure(
        "files: damage to tables, schemas, traces, settings, model folders and weights for ten minutes",
        "read or refused in words within 5 s of processor, never a stack trace",
        ", ".join(f"{tried[kind]:,} of a {kind} ({refused[kind]:,} refused)" for kind in KINDS)
        + f"; {len(finds)} finds",
        not finds,
    )
    assert not finds, "\n".join(finds)


def keep(kind: str, data: bytes, error: Exception) -> str:
    """Writes a find down as a case, to be named after what it is."""
    path = FINDS / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return f"{path}: {type(error).__name__}: {error!s:.200}"

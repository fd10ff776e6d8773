"""What a file costs in memory on its whole way to a cohort: a few times its size."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from l2m_core.cohort import Cohort
from l2m_core.tables.table import DEFAULT_LIMITS, Limits
from tests.figures import Keep
from tests.tables import reading_memory
from tests.tables.hostile import parquets

COLUMNS = 20
BYTES_OF_A_NUMBER = 4
MOST = 4
MOST_OF_PARQUET = 8


def content(kind: str, rows: int) -> bytes:
    rng = np.random.default_rng(0)
    if kind == "numbers":
        cells = rng.normal(size=(rows, COLUMNS)).round(3).astype(str)
    elif kind == "levels":
        cells = np.char.add("level of a test ", rng.integers(0, 40, (rows, COLUMNS)).astype(str))
    else:
        cells = rng.integers(0, 10, (rows, COLUMNS)).astype(str)
    lines = [",".join([*row, str(i % 2)]) for i, row in enumerate(cells.tolist())]
    return "\n".join([",".join([*(f"f{i}" for i in range(COLUMNS)), "y"]), *lines]).encode()


def allowed(size: int, rows: int) -> int:
    """Four times the file. Cells of one digit take less room in it than the numbers that they are: four times those, then."""
    return MOST * max(size, BYTES_OF_A_NUMBER * rows * (COLUMNS + 1))


@pytest.mark.parametrize("kind", ["numbers", "levels", "digits"])
def test_a_cohort_costs_a_few_times_its_file(kind: str) -> None:
    rows = 12_000
    data = content(kind, rows)
    Cohort.from_csv(content(kind, 50), "y")  # what is loaded at the first use is no part of the file's price
    tracemalloc.start()
    Cohort.from_csv(data, "y")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= allowed(len(data), rows)


def rises(repository: Path, limits: Limits, paths: list[Path]) -> list[tuple[int, int]]:
    """Of each file: bytes by which resident memory rose while it was read, and rows of its cohort."""
    command = [sys.executable, "-m", "tests.tables.reading_memory", str(limits.megabytes), *map(str, paths)]
    answer = subprocess.run(
        command, cwd=repository, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True
    )
    rise_and_rows = list(map(int, answer.stdout.split()))
    return list(zip(rise_and_rows[::2], rise_and_rows[1::2], strict=True))


@pytest.mark.skipif(not reading_memory.PEAK.exists(), reason="resident memory is read from /proc")
def test_no_parquet_file_costs_more_than_a_few_times_the_limit(tmp_path: Path, repository: Path) -> None:
    """All at the size of a few kilobytes, and of up to a hundred times the limit once read."""
    paths = [tmp_path / f"{number}.parquet" for number in range(len(parquets.CASES))]
    for path, case in zip(paths, parquets.CASES, strict=True):
        path.write_bytes(case.data)
    most = MOST_OF_PARQUET * parquets.LIMITS.size
    found = zip(parquets.CASES, rises(repository, parquets.LIMITS, paths), strict=True)
    high = [(case.name, rise) for case, (rise, _) in found if rise > most]
    assert high == []


@pytest.mark.reliability
@pytest.mark.skipif(not reading_memory.PEAK.exists(), reason="resident memory is read from /proc")
@pytest.mark.parametrize("kind", ["numbers", "levels", "digits"])
def test_resident_memory_stays_within_four_times_the_file(
    tmp_path: Path, repository: Path, kind: str, figure: Keep
) -> None:
    rows = 100_000
    path = tmp_path / "table.csv"
    path.write_bytes(content(kind, rows))
    [(rise, read)] = rises(repository, DEFAULT_LIMITS, [path])
    size, most = path.stat().st_size, allowed(path.stat().st_size, rows)
    short = most > MOST * size
    assert read == rows
    figure(
        f"uploads: memory from a CSV of {rows:,} rows and {COLUMNS + 1} columns of {kind} to its cohort",
        "≤ 4 × the file's numbers at 4 bytes each" if short else "≤ 4 × the file",
        f"{rise / size:.1f} × the file of {size / 1e6:.1f} MB{f', {MOST * rise / most:.1f} × its numbers' if short else ''}",
        rise <= most,
    )
    assert rise <= most

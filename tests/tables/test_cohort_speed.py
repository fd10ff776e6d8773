"""How long it takes to read a large table, a hostile one, and to diagnose a cohort: in the long run only, as machines differ."""

import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from tests.figures import Keep
from tests.tables.hostile.corpus import CASES, Hostile

pytestmark = pytest.mark.reliability


def best_of(attempts: int, work: Callable[[], object]) -> float:
    """Seconds of processor that the quickest attempt took."""
    seconds = []
    for _ in range(attempts):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds)


def test_a_large_table_is_read_quickly(figure: Keep) -> None:
    rng = np.random.default_rng(0)
    columns = {f"lab{i}": rng.normal(size=8000).round(3) for i in range(40)}
    data = pd.DataFrame({**columns, "y": rng.integers(0, 2, 8000)}).to_csv(index=False).encode()
    best = best_of(3, lambda: Cohort.from_csv(data, "y"))
    check = "uploads: reading a CSV of 8,000 rows and 41 columns"
    figure(check, "< 2 s of processor", f"{best:.2f} s, best of three", best < 2)
    assert best < 2


def test_a_large_cohort_is_diagnosed_quickly(figure: Keep) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8000, 40))
    x[rng.random(x.shape) < 0.3] = np.nan
    cohort = Cohort.from_arrays(x, rng.integers(0, 2, 8000))
    best = best_of(3, cohort.diagnostics)
    figure("diagnostics of 8,000 rows and 40 features", "< 1 s of processor", f"{best:.2f} s, best of three", best < 1)
    assert best < 1


def read_or_refuse(case: Hostile) -> None:
    try:
        Cohort.from_csv(case.data, **{"outcome": "died", **case.options})
    except InputError as refusal:
        assert str(refusal)


def test_no_hostile_file_takes_long(figure: Keep) -> None:
    slowest = max(best_of(1, lambda case=case: read_or_refuse(case)) for case in CASES)
    check = f"uploads: the slowest of {len(CASES)} hostile files"
    figure(check, "≤ 5 s of processor", f"{slowest:.2f} s", slowest <= 5)
    assert slowest <= 5

"""The command that measures what reading fewer rows of a long cohort costs."""

from __future__ import annotations

import dataclasses
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from l2m_core.memory import L2M, load
from train.__main__ import main
from train.study import long_cohorts


@pytest.fixture(scope="module")
def model() -> L2M:
    return load("general")


@pytest.mark.parametrize("limit", long_cohorts.LIMITS, ids=lambda limit: limit.family.name)
def test_tasks_have_as_many_classes_as_the_limit_is_about_and_more_rows_than_it(limit) -> None:
    trial, x = next(long_cohorts.drawn(limit))
    assert (trial.context.n_classes == 2) is limit.binary and len(trial.context) == limit.family.context
    assert x.shape == trial.x.shape and 0.2 < np.isnan(x).mean() < 0.8


def test_each_way_reads_what_it_says(model: L2M) -> None:
    family = dataclasses.replace(long_cohorts.LIMITS[2].family, context=120, test_rows=10)
    drawn = long_cohorts.drawn(dataclasses.replace(long_cohorts.LIMITS[2], family=family))
    trial, _ = next(drawn)
    parts = long_cohorts.reading(part_rows=30, most_parts=2, view_rows=20, against_rest=0.75)(model, trial.context)
    assert [m.context_rows for m in parts.memories] == [30, 30, 20]
    fewer = long_cohorts.reading(view_rows=40, against_rest=0.75)(model, trial.context)
    assert [m.context_rows for m in fewer.memories] == [120, 40]
    found = {long_cohorts.with_its_own_exponent(model, other.context).exponent for other, _ in islice(drawn, 4)}
    assert len(found) > 1  # each cohort has its own


def test_the_page_compares_each_way_with_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = dataclasses.replace(long_cohorts.LIMITS[0].family, context=60, test_rows=20)
    ways = {"60 of 60": long_cohorts.reading(part_rows=60), "30": long_cohorts.reading(part_rows=30)}
    limit = long_cohorts.Limit("Rows", short, True, ways)
    monkeypatch.setattr(long_cohorts, "LIMITS", (limit,))
    assert main(["long_cohorts", "--tasks", "2", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "long_cohorts.md").read_text()
    assert "| 60 of 60 |" in page and "| — | 2 |" in page and "| 30 |" in page


def test_limits_can_be_judged_by_their_titles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = dataclasses.replace(long_cohorts.LIMITS[0].family, context=60, test_rows=20)
    way = {"60 of 60": long_cohorts.reading(part_rows=60)}
    limits = [long_cohorts.Limit(title, short, True, way) for title in ("Rows", "Cells of a wide table")]
    monkeypatch.setattr(long_cohorts, "LIMITS", limits)
    assert main(["long_cohorts", "--tasks", "1", "--only", "wide", "--out", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert "## Cells of a wide table" in page and "## Rows" not in page and not list(tmp_path.iterdir())

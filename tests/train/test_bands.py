"""The command that has uncertainty bands beside answers of new cohorts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from l2m_core.memory import L2M, load
from train.__main__ import main
from train.study import bands


@pytest.fixture(scope="module")
def model() -> L2M:
    return load("general")


@pytest.fixture
def source() -> bands.Source:
    return next(bands.generated(1, 40))


def test_cohorts_share_no_row_with_each_other_or_with_the_patients(source: bands.Source) -> None:
    cohorts = source.cohorts(40)
    assert len(cohorts) == bands.COHORTS and {len(cohort) for cohort in cohorts} == {40}
    assert np.array_equal(np.concatenate([cohort.y for cohort in cohorts]), source.table.y[: 40 * bands.COHORTS])
    assert len(source.table) == 40 * bands.COHORTS and len(source.x) == bands.PATIENTS
    assert 0.2 < np.isnan(source.x).mean() < 0.8


def test_a_band_is_as_wide_as_the_answers_that_it_is_of(model: L2M, source: bands.Source) -> None:
    answers = np.stack([bands.shown(model.condition(cohort), source.x) for cohort in source.cohorts(40)])
    apart = bands.width(answers, answers.mean(0), 1.0)
    assert 0.01 < apart < 0.5
    # Of samples with fewer rows, each answer counts for less.
    assert bands.width(answers, answers.mean(0), 0.1) < 0.7 * apart
    assert bands.width(answers, answers.mean(0), 0.1, bands.SQUARE_ROOT) < 0.4 * apart


def test_the_page_has_each_size_and_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bands, "KINDS", ("signs",))
    assert main(["bands", "--tasks", "1", "--rows", "40", "80", "--out", str(tmp_path)]) == 0
    lines = (tmp_path / "bands.md").read_text().splitlines()
    assert [line[:24] for line in lines if line.startswith("| generated | signs")] == ["| generated | signs 1 | "] * 3
    (whole, double, half) = (line for line in lines if line.startswith("| generated |") and "[" in line)
    assert "`python -m train bands --tasks 1 --rows 40 80`" in "\n".join(lines), "the command that gives these numbers"
    assert "| 40 | 1 | 1 |" in whole and "| 80 | 1 | 1 |" in double and "| 80 | 0.5000 | 1 |" in half


def test_a_run_that_is_cut_short_leaves_what_it_has_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(tasks: int, most_rows: int) -> Iterator[bands.Source]:
        yield from itertools.islice(whole(tasks, most_rows), 1)
        raise KeyboardInterrupt

    whole = bands.generated
    monkeypatch.setattr(bands, "generated", cut)
    with pytest.raises(KeyboardInterrupt):
        bands.main(["--tasks", "1", "--rows", "40", "--out", str(tmp_path)])
    assert "| generated | synthetic 1 | 40 |" in (tmp_path / "bands.md").read_text()


def test_real_tables_are_mixed_and_short_ones_left_out(tmp_path: Path, model: L2M) -> None:
    for name, rows in (("long", 400), ("short", 300)):
        lines = [f"{20 + row / 8},{row % 7},{'yes' if row % 7 > 3 else 'no'}" for row in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,pulse,died", *lines]))
    entries = [
        f"{{name: {name}, file: {name}.csv, outcome: died, task: binary, baseline_columns: [age], acquirable_columns: [pulse]}}"
        for name in ("long", "short")
    ]
    (tmp_path / "manifest.yaml").write_text("datasets:\n" + "".join(f"  - {entry}\n" for entry in entries))
    sources = list(bands.real(tmp_path))
    assert [(source.name, len(source.table)) for source in sources] == [("long", 360), ("short", 260)]
    ages = sources[0].table.x[:, 0]
    assert len(set(ages)) == 360 and not np.array_equal(ages, np.sort(ages))
    assert not set(ages) & set(sources[0].x[~np.isnan(sources[0].x[:, 0]), 0])
    assert len(list(bands.judge(model, sources[0], [40]))) == 1 and not list(bands.judge(model, sources[1], [40]))

"""`python -m train members`: what the council adds, and each of its members."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from l2m_core.council.fitting import expected_weights
from train.__main__ import main
from train.study import members


def test_each_member_is_left_out_once_and_expectations_where_there_are_any() -> None:
    numbers, classes = (members.draw(members.TABLES[name], 80, 1, seed=0)[0] for name in ("straight", "groups"))
    of_numbers, of_classes = members.variants(numbers), members.variants(classes)
    assert of_numbers["council"] == expected_weights(numbers)
    for variants in (of_numbers, of_classes):
        assert any(variants["council"].values()) and not any(variants["nothing expected"].values())
        for name in variants["council"]:
            left = variants[f"without {name}"]
            assert {**left, name: variants["council"][name]} == variants["council"] and name not in left


def test_rows_asked_about_are_not_the_cohort_s_and_know_from_little_to_all() -> None:
    table = members.TABLES["groups of four classes"]
    cohort, x, y = members.draw(table, rows=80, test_rows=400, seed=1)
    assert len(cohort) == 80 and cohort.n_classes == 4 and len(x) == len(y) == 400
    assert np.isnan(cohort.x).mean() == pytest.approx(members.NOT_RECORDED, abs=0.05)
    known = 1 - np.isnan(x).mean(1)
    assert known.min() < 0.15 and known.max() > 0.85
    shared = np.isin(x[~np.isnan(x)], cohort.x[~np.isnan(cohort.x)])
    assert shared.mean() < 0.01


def test_the_command_writes_its_page(tmp_path: Path) -> None:
    arguments = ["--tables", "rings", "--rows", "60", "--seeds", "0", "--test-rows", "50", "--out", str(tmp_path)]
    assert main(["members", *arguments]) == 0
    page = (tmp_path / "members.md").read_text()
    assert "## Classes" in page and "## Continuous outcomes" not in page
    assert "| rings | 60 |" in page and "- without trees: " in page


def test_cohorts_of_one_seed_count_as_one_table_however_many_sizes_share_its_rows() -> None:
    def said(rows: list[int]) -> str:
        above = {0: 0.02, 1: 0.05, 2: 0.03}
        cells = [(n, seed, voice) for n in rows for seed in above for voice in (members.MODEL, members.COUNCIL)]
        records = [
            {"table": "rings", "rows": n, "seed": seed, "voice": voice, "loss": above[seed] * (voice == members.MODEL)}
            for n, seed, voice in cells
        ]
        return next(
            line for line in members.page(records, "command", "a model").splitlines() if line.startswith("- model")
        )

    assert said([100]) == said([100, 250]) == said([100, 250, 400])
    assert "0.0333 [-0.0046, 0.0713]" in said([100])
    table = members.TABLES["friedman1"]
    small, large = (table.draw(rows, 0)[0] for rows in (300, 450))
    assert np.array_equal(small, large[:300]), "a larger table of a seed has the rows of a smaller one"

"""`python -m train informed_order`: predictions along the order of somebody who has read more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from l2m_core.cohort import Cohort
from l2m_core.memory import load
from train.__main__ import main
from train.study import informed_order
from train.study.evaluation.cells import Cell, Trial


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of one test that tells all, and three that tell nothing; and one that is too short."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(450, 4))
    table = pd.DataFrame(x, columns=list("abcd")).assign(y=np.where(x[:, 2] > 0, "yes", "no"))
    table.to_csv(tmp_path / "long.csv", index=False)
    table.head(200).to_csv(tmp_path / "short.csv", index=False)
    entry = {"outcome": "y", "task": "binary", "positive_label": "yes", "baseline_columns": ["a"]}
    entry["acquirable_columns"] = ["b", "c", "d"]
    entries = [{"name": name, "file": f"{name}.csv", **entry} for name in ("long", "short")]
    (tmp_path / "manifest.yaml").write_text(yaml.safe_dump({"datasets": entries}))
    return tmp_path


def test_the_informed_has_read_more_rows_and_is_asked_about_the_same(folder: Path) -> None:
    cases = list(informed_order.real_cases(folder, [100], 1500, [0, 1]))
    assert [(case.cell.cohort, case.cell.seed) for case in cases] == [("long", 0), ("long", 1)]
    for case in cases:
        assert len(case.trial.context) == 100 and len(case.informed.context) == 300
        np.testing.assert_array_equal(case.trial.x, case.informed.x)
        # The rows that both have read are the same.
        np.testing.assert_array_equal(case.informed.context.x[:100], case.trial.context.x)


def test_predictions_are_those_of_the_short_context_along_the_order_of_the_long_one() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(240, 3)).astype(np.float32)
    y = (x[:, 1] > 0).astype(int)
    model = load("general")
    told = Cohort.from_arrays(x[:160], y[:160], kind="binary", classes=("no", "yes"), name="told")
    # The short context has its outcomes shuffled: it cannot know which test tells.
    shuffled = rng.permutation(y[:60])
    blind = Cohort.from_arrays(x[:60], shuffled, kind="binary", classes=("no", "yes"), name="blind")
    trial = Trial(blind, x[160:], y[160:])
    case = informed_order.Case(Cell("made", 60, 0.0, 0), trial, Trial(told, x[160:], y[160:]))
    memory, informed = model.condition(blind), model.condition(told)
    answer = memory.answer(np.full((1, 3), np.nan, np.float32))
    ranked = informed_order.OrderOf(informed).scores(memory, np.full((1, 3), np.nan, np.float32), answer)
    assert ranked[0].argmax() == 1
    by_order = {record["method"]: record for record in informed_order.measure(model, case, budget=3)}
    assert set(by_order) == {"own", "informed", "random"} and by_order["own"]["read"] == 160
    # Whoever orders, the context with shuffled outcomes predicts: with a log loss of 0.69 at best, where the other has far less.
    assert min(record["log_loss"] for record in by_order.values()) > 0.6
    page = informed_order.page(list(by_order.values()), "command", "model")
    assert "The better informed order saves beyond the own one" in page and "| made | 60 | 160 |" in page


def test_the_command_writes_its_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "out"
    arguments = ["--data", str(folder), "--contexts", "50", "--tasks", "0", "--budget", "2", "--out", str(out)]
    assert main(["informed_order", *arguments]) == 0
    page = (out / "informed_order.md").read_text()
    assert "## Real cohorts" in page and "## Synthetic tasks" not in page
    assert "| long | 50 | 300 |" in page


def test_without_anything_to_ask_about_the_command_says_what_to_give(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["informed_order", "--data", str(tmp_path), "--tasks", "0", "--out", str(tmp_path / "out")]) == 2
    assert "give --tasks 1 or more" in capsys.readouterr().err

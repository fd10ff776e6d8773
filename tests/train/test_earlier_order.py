"""`python -m train earlier_order`: one model's predictions along its own order and an earlier release's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from l2m_core.memory import load
from train.__main__ import main
from train.study import earlier_order
from train.study.evaluation.cells import Cell, Trial, draw_trial
from train.study.evaluation.manifest import read_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the tests, `c` tells most and `b` some; and a table with a continuous outcome, which is not asked about."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 4))
    table = pd.DataFrame(x, columns=list("abcd")).assign(
        y=np.where(x[:, 2] + 0.3 * x[:, 1] > 0, "yes", "no"), z=x[:, 3]
    )
    table.to_csv(tmp_path / "table.csv", index=False)
    shared = {"file": "table.csv", "baseline_columns": ["a"], "acquirable_columns": ["b", "c", "d"]}
    entries = [
        {"name": "classes", "outcome": "y", "task": "binary", "positive_label": "yes", **shared},
        {"name": "numbers", "outcome": "z", "task": "continuous", **shared, "acquirable_columns": ["b", "c"]},
    ]
    (tmp_path / "manifest.yaml").write_text(yaml.safe_dump({"datasets": entries}))
    return tmp_path


def test_the_model_predicts_whoever_orders(folder: Path) -> None:
    cell = Cell("classes", 50, 0.0, 0)
    table = next(table for table in read_manifest(folder) if table.name == "classes")
    trial = draw_trial(table.load(), cell, 40)
    general, earlier = load("general"), load("general-1")
    by_order = {r["method"]: r["log_loss"] for r in earlier_order.measure(general, earlier, cell, trial, 2)}
    assert by_order["own"] < by_order["random"] and by_order["earlier"] < by_order["random"]
    # Where nothing can be asked for, all orders are one: what differs between them is never who predicts.
    nothing_open = _without_tests(trial)
    for other in (earlier, general):
        found = earlier_order.measure(general, other, cell, nothing_open, 1)
        assert len({record["log_loss"] for record in found}) == 1


def _without_tests(trial: Trial) -> Trial:
    """Of each patient no test can be had, so that no order makes a difference."""
    return Trial(trial.context, np.where(trial.context.acquirable, np.nan, trial.x).astype(np.float32), trial.y)


def test_the_command_writes_its_page(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--earlier", "general", "--contexts", "50", "--missing", "0", "--budget", "1", "--test-rows", "30"]
    assert main(["earlier_order", "--data", str(folder), *arguments, "--out", str(out)]) == 0
    page = (out / "earlier_order.md").read_text()
    # An order beside itself saves nothing.
    assert "The own order saves beyond the earlier release's: 0.0000 (too few for an interval) nats over cells" in page
    assert "| classes | 50 |" in page and "| numbers |" not in page
    assert str(tmp_path) not in page

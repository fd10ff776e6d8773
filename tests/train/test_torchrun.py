"""`torchrun` as a person types it: two gloo processes log the losses of one process with the same batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from tests.train.test_jobs import STAGE, TINY, predictor  # noqa: F401
from train.__main__ import main
from train.initial_model import load_initial_model

TOP = Path(__file__).resolve().parents[2]


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def in_two_processes(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "train"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=TOP,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-12_000:]
    return done


def test_two_processes_of_torchrun_train_one_model(tmp_path):
    config = tmp_path / "job.yaml"
    loop = {"warmup": 2, "threads": 1, "evaluate_every": 0, "log_every": 1, "dtype": "float32"}
    settings = {"stages": [{**STAGE, "tasks": 5}], "loop": loop, "held_out": ["own"], "held_out_pools": 1}
    config.write_text(yaml.safe_dump({**settings, "model": TINY, "prior": {"name": "bnn"}}))
    assert main(["predictor", "--config", str(config), f"folder={tmp_path / 'one'}"]) == 0
    done = in_two_processes("predictor", "--config", str(config), f"folder={tmp_path / 'two'}")
    assert done.stdout.count("held-out own: loss") == 1  # one of them speaks for both
    alone = losses(tmp_path / "one")
    assert len(alone) == 6 and losses(tmp_path / "two") == pytest.approx(alone, rel=1e-4)


def test_two_processes_fine_tune_one_model(tmp_path, predictor):  # noqa: F811
    x = np.random.default_rng(0).normal(size=(60, 3))
    rows = "\n".join(",".join(f"{value:.3f}" for value in row) + f",{int(row[1] > 0)}" for row in x)
    (tmp_path / "table.csv").write_text("age,pulse,lactate,died\n" + rows)
    settings = {"init": str(predictor), "cohort": str(tmp_path / "table.csv"), "outcome": "died"}
    settings |= {"finetune": {"steps": 4, "evaluate_every": 2, "tasks": 3, "dtype": "float32", "lr": 0.01}}
    config = tmp_path / "finetune.yaml"
    config.write_text(yaml.safe_dump(settings))
    assert main(["finetune", "--config", str(config), f"folder={tmp_path / 'one'}"]) == 0
    in_two_processes("finetune", "--config", str(config), f"folder={tmp_path / 'two'}")
    alone, both = (load_initial_model(str(tmp_path / name / "model")).state_dict() for name in ("one", "two"))
    assert all(torch.allclose(alone[name], both[name], atol=1e-3) for name in alone)

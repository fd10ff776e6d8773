"""`torchrun` as a person types it: two gloo processes log the losses of one process with the same batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.train.test_jobs import STAGE, TINY
from train.__main__ import main

TOP = Path(__file__).resolve().parents[2]


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def test_two_processes_of_torchrun_train_one_model(tmp_path):
    config = tmp_path / "job.yaml"
    loop = {"warmup": 2, "threads": 1, "evaluate_every": 0, "log_every": 1, "dtype": "float32"}
    settings = {"stages": [{**STAGE, "tasks": 5}], "loop": loop, "held_out": ["own"], "held_out_pools": 1}
    config.write_text(yaml.safe_dump({**settings, "model": TINY, "prior": {"name": "bnn"}}))
    assert main(["predictor", "--config", str(config), f"folder={tmp_path / 'one'}"]) == 0
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "train"]
    done = subprocess.run(
        [*command, "predictor", "--config", str(config), f"folder={tmp_path / 'two'}"],
        cwd=TOP,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("held-out own: loss") == 1  # one of them speaks for both
    alone = losses(tmp_path / "one")
    assert len(alone) == 6 and losses(tmp_path / "two") == pytest.approx(alone, rel=1e-4)

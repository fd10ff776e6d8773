"""The benchmark command prints every figure owed, from one run, with what is owed beside it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from l2m_core.answering.release import save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import TrainingError
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from train.__main__ import main
from train.study import benchmark


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16)
    save_model(tmp_path / "tiny", build_model(config), config, TrainedRange(), AnswerSettings(), {})
    return str(tmp_path / "tiny")


def test_one_run_prints_every_figure_beside_what_is_owed(tiny, tmp_path, monkeypatch, capsys):
    for name, value in {"SIZES": ((30, 3),), "STEPS": 2, "TASKS": 1, "ROWS": 16, "TRAINING_STEPS": 1}.items():
        monkeypatch.setattr(benchmark, name, value)
    out = tmp_path / "benchmark.md"
    threads = torch.get_num_threads()
    command = ["benchmark", "--model", tiny, "--threads", "1", "--patients", "5", "--out", str(out)]
    try:
        assert main(command) == 0
    finally:
        torch.set_num_threads(threads)
    page = out.read_text()
    assert capsys.readouterr().out.strip() == page.strip()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:2] == "| "]
    owed = {what: (measured, owed) for what, measured, owed in table[2:]}
    for what, unit, least in [
        ("belief and ranking by the gain head", "ms", "p95 < 50 ms"),
        ("one step with its gains computed", "ms", "p95 < 80 ms"),
        ("encoding that cohort again", "times", "at least 50 times"),
        ("conditioning 30 × 3", "GB", ""),
        ("5 patients × 8 acquisitions", "memory grew", "10,000 in < 300 s, steady memory"),
        ("training, rows encoder", "rows/s", "at least 3 times naively"),
        ("training, cells encoder", "rows/s", ""),
    ]:
        found = [row for key, row in owed.items() if key.startswith(what)]
        assert len(found) == 1 and unit in found[0][0] and found[0][1] == least, what


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="elsewhere it begins at nothing")
def test_a_peak_is_that_of_the_process_alone_and_not_of_who_started_it(tiny):
    held = np.ones(2**27)  # a gigabyte
    command = [sys.executable, "-m", "train", "benchmark", "--model", tiny, "--threads", "1", "--child", "30", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 0 < json.loads(done.stdout.splitlines()[-1])["peak_gb"] < held.nbytes / 2**30


def test_a_size_that_fails_is_told_in_the_words_in_which_it_failed():
    given = benchmark.parse(["--model", "nobody's"])
    with pytest.raises(TrainingError, match="^Conditioning 30 × 3 came to no end: There is no model 'nobody's'"):
        benchmark.conditioning_row(given, 30, 3)

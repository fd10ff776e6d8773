"""The benchmark command prints every figure owed, from one run, with what is owed beside it."""

import torch

from l2m_core.answering.release import save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from train.__main__ import main
from train.study import benchmark


def test_one_run_prints_every_figure_beside_what_is_owed(tmp_path, monkeypatch, capsys):
    for name, value in {"SIZES": ((30, 3),), "STEPS": 2, "TASKS": 1, "ROWS": 16, "TRAINING_STEPS": 1}.items():
        monkeypatch.setattr(benchmark, name, value)
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16)
    save_model(tmp_path / "tiny", build_model(config), config, TrainedRange(), AnswerSettings(), {})
    out = tmp_path / "benchmark.md"
    threads = torch.get_num_threads()
    command = ["benchmark", "--model", str(tmp_path / "tiny"), "--threads", "1", "--patients", "5", "--out", str(out)]
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

"""The command that holds a GPU beside the CPU, and jobs that are told where to train; a second CPU device is the GPU."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from l2m_core.answering import devices
from l2m_core.answering.release import save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import DeviceWarning
from l2m_core.model.interface import ModelConfig
from tests.second_device import SecondDevice, telling_model
from train import predictor
from train.__main__ import main
from train.study import devices as command

TINY = ModelConfig(layers=1, width=16, heads=2, feedforward=16)


@pytest.fixture
def second(monkeypatch):
    monkeypatch.setenv(devices.VARIABLE, "auto")  # put back at the end, whatever a command sets
    gpus = SecondDevice()
    monkeypatch.setattr(devices, "gpus", gpus)
    for name in ("STEPS", "READINGS"):
        monkeypatch.setattr(command, name, 2)
    threads = torch.get_num_threads()
    yield gpus
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models") / "tiny"
    save_model(made, telling_model(TINY), TINY, TrainedRange(), AnswerSettings(), {})
    return made


def page(folder, out, *more):
    sizes = ("--rows", "60", "--features", "4", "--patients", "20", "--threads", "1")
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error", DeviceWarning
        )  # only the failure that is made may be met, and it is heard inside
        status = main(["devices", "--model", str(folder), *sizes, "--out", str(out), *more])
    return status, out.read_text() if out.exists() else ""


def rows_of(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]


def test_one_page_holds_both_devices_beside_each_other(second, folder, tmp_path):
    status, text = page(folder, tmp_path / "devices.md", "--device", "cuda")
    assert status == 0
    assert second.calls > 0
    table = {row[0]: row[1:] for row in rows_of(text)}
    for name in ("cpu", "cuda:0 (Second Device)"):
        step, reading, speed, peak = table[name]
        assert step.endswith(" ms") and reading.endswith(" s") and speed.endswith("patients/s") and peak.endswith("GiB")
    assert table["cuda:0 (Second Device)"][3] == "0.12 GiB", "what the GPU says of its own memory"
    for kind in (*command.KINDS, "two classes, after the GPU ran out of memory"):
        assert table[kind] == ["0.0e+00", "0.0e+00", "100.0%"], kind
    assert text.rstrip().endswith("met.") and "NOT met" not in text


def test_answers_that_lie_apart_are_not_passed_over(second, folder, tmp_path, monkeypatch):
    place = second.place

    def askew(module, number):
        placed = place(module, number)
        with torch.no_grad():
            for weight in placed.parameters():
                weight.mul_(1.01)
        return placed

    monkeypatch.setattr(second, "place", askew)
    _, text = page(folder, tmp_path / "devices.md")
    assert "NOT met" in text


def test_without_a_gpu_there_is_nothing_to_compare(second, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(second, "count", lambda: 0)
    status, text = page(folder, tmp_path / "devices.md")
    assert status == 2 and not text
    assert "nothing to compare with the CPU" in capsys.readouterr().err


def test_gains_and_first_suggestions_are_compared_where_tests_are_open(second, folder):
    x = command.questions(command.cohort_of("continuous", 60, 4))
    assert np.isnan(x).any(1).all() and not np.isnan(x).all()


# -- jobs -------------------------------------------------------------------------------------------------------------

SETTINGS = """
folder: {folder}
model: {{layers: 1, width: 16, heads: 2, feedforward: 16}}
stages: [{{steps: 1, tasks: 1, rows: [8], features: [2]}}]
"""


@pytest.mark.parametrize(
    ("variable", "overrides", "device"),
    [
        ("", [], "cpu"),
        ("auto", [], "cuda:0"),
        ("cuda:0", ["device=cpu"], "cpu"),
        ("cpu", ["device=auto"], "cuda:0"),
        ("cuda:0", [], "cuda:0"),
    ],
)
def test_a_job_trains_where_it_is_told(second, tmp_path, monkeypatch, variable, overrides, device):
    monkeypatch.setenv(devices.VARIABLE, variable)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    ran = []
    monkeypatch.setattr(predictor, "run", lambda job, resume: ran.append(job.device))
    config = tmp_path / "job.yaml"
    config.write_text(SETTINGS.format(folder=tmp_path / "run"))
    assert main(["predictor", "--config", str(config), *overrides]) == 0
    assert ran == [device]


def test_a_job_on_a_device_of_another_name_is_refused(second, tmp_path, capsys):
    config = tmp_path / "job.yaml"
    config.write_text(SETTINGS.format(folder=tmp_path / "run"))
    assert main(["predictor", "--config", str(config), "device=abacus"]) == 2
    assert "device is 'abacus'; it must be auto, cpu, cuda" in capsys.readouterr().err


def test_processes_of_torchrun_have_a_gpu_each(second, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert devices.for_training("auto") == "cuda"

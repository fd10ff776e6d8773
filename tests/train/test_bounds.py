"""A job that no machine would hold is refused from its settings, before anything is allocated."""

import json
import tracemalloc
from pathlib import Path

import pytest
import torch
import yaml

import l2m_core as l2m
from l2m_core.answering.release import FACTS, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import ModelFileError
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.settings import build_settings, read_settings
from train.__main__ import main, settings_of

CONFIGS = Path(__file__).resolve().parents[2] / "train" / "configs"
STAGE = {"steps": 6, "tasks": 4, "rows": [24], "features": [3]}
LARGE = [
    ({"rows": [10_000_000]}, "stage 1 with 4 tasks of 10,000,000 rows and 3 features"),
    ({"rows": [24, 10_000_000]}, "of 10,000,000 rows"),
    ({"features": [10_000_000]}, "and 10,000,000 features"),
    ({"tasks": 100_000_000}, "with 100,000,000 tasks"),
    ({"cells": 10**12}, "tasks of 24 rows"),
]


def write(tmp_path: Path, settings: dict) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(settings))
    return str(path)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    tracemalloc.start()
    try:
        assert main(list(arguments)) == 2
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100e6
    return capsys.readouterr().err


@pytest.mark.parametrize("check", [[], ["--check"]], ids=["run", "check"])
@pytest.mark.parametrize(("change", "words"), LARGE)
@pytest.mark.parametrize("job", ["predictor", "gain", "policy"])
def test_a_step_beyond_any_machine_is_refused_with_its_memory(tmp_path, capsys, job, change, words, check) -> None:
    init = {} if job == "predictor" else {"init": "general"}
    config = write(tmp_path, {"folder": str(tmp_path / "job"), "stages": [{**STAGE, **change}], **init})
    said = refusal(capsys, job, "--config", config, *check)
    assert words in said and "GB of memory; a job may take 256 GB. Choose fewer rows" in said
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize("check", [[], ["--check"]], ids=["run", "check"])
@pytest.mark.parametrize("change", [{"rows": 10_000_000}, {"tasks": 100_000_000}])
def test_a_split_of_a_cohort_beyond_any_machine_is_refused(tmp_path, capsys, change, check) -> None:
    config = write(tmp_path, {"folder": str(tmp_path / "job"), "cohort": "ward.csv", "finetune": change})
    assert "a job may take 256 GB" in refusal(capsys, "finetune", "--config", config, *check)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"width": 100_000_000}, "model.width (100,000,000)"),
        ({"width": 10**9}, "the most are 1,000,000,000, 4 GB"),
        ({"feedforward": 10**9}, "model.feedforward (1,000,000,000)"),
        ({"layers": 10**9}, "model.layers is 1000000000; it must be at most 1000"),
        ({"thinking": 10**8}, "parameters"),
        ({"max_classes": 10**8}, "parameters"),
        ({"encoder": "rows", "outcome": "classes", "features": 10**8}, "parameters"),
    ],
)
def test_a_model_beyond_any_machine_is_refused(tmp_path, capsys, model, words) -> None:
    config = write(tmp_path, {"folder": str(tmp_path / "job"), "stages": [STAGE], "model": model})
    for check in ([], ["--check"]):
        assert words in refusal(capsys, "predictor", "--config", config, *check)


def test_too_many_held_out_tasks_are_refused(tmp_path, capsys) -> None:
    config = write(tmp_path, {"folder": str(tmp_path / "job"), "stages": [STAGE], "held_out_pools": 10**9})
    assert "held-out pools" in refusal(capsys, "predictor", "--config", config)


def test_a_model_folder_that_asks_for_a_width_of_a_billion_is_refused_by_name(tmp_path: Path) -> None:
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16)
    save_model(tmp_path / "gift", build_model(config), config, TrainedRange(), AnswerSettings(), {})
    facts = yaml.safe_load((tmp_path / "gift" / FACTS).read_text())
    facts["model"]["width"] = 10**9
    (tmp_path / "gift" / FACTS).write_text(yaml.safe_dump(facts))
    with pytest.raises(
        ModelFileError, match=r"model.yaml of model 'gift'.*model.width \(1,000,000,000\).*GB of memory"
    ):
        l2m.load(str(tmp_path / "gift"))


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_configs_that_come_with_it_are_within_the_bounds(path: Path) -> None:
    settings = read_settings(path)
    job = next((job for job in ("policy", "gain") if job in path.stem.split("_")), "predictor")
    if "stages" in settings:
        assert build_settings(settings_of(job), settings).stages


@pytest.mark.parametrize(
    "settings",
    [{}, {"layers": 2, "width": 64}, {"vote": True}, {"encoder": "rows", "outcome": "classes", "features": 20}],
    ids=json.dumps,
)
def test_the_number_of_parameters_is_about_that_of_the_module(settings: dict) -> None:
    config = ModelConfig(**settings)
    with torch.device("meta"):
        counted = sum(parameter.numel() for parameter in build_model(config).parameters())
    assert 0.8 < config.parameters / counted < 1.25

"""A model is kept as its difference from a released one, and taken up from there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from l2m_core.answering.release import save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import ConfigError, ModelFileError
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from tests.prerequisites import REPOSITORY
from train import difference, portable_state
from train.__main__ import main
from train.initial_model import load_initial_model

CONFIG = ModelConfig(layers=1, width=16, heads=2, feedforward=16, max_classes=3, bins=12)


def released(folder: Path, config: ModelConfig = CONFIG) -> str:
    torch.manual_seed(0)
    save_model(folder, build_model(config), config, TrainedRange(), AnswerSettings(), {})
    return str(folder)


def test_it_comes_back_to_within_a_hundredth_of_what_was_learnt(tmp_path: Path) -> None:
    base = released(tmp_path / "base")
    model = load_initial_model(base)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.01 * torch.randn(weight.shape))
    difference.keep(model, base, tmp_path / "kept")
    found = load_initial_model(str(tmp_path / "kept"))
    assert all(weight.requires_grad for weight in found.parameters()) and found.training
    for name, value in model.state_dict().items():
        learnt = (value - before[name]).abs().max()
        assert (found.state_dict()[name] - value).abs().max() <= 0.01 * learnt, name
    kept = sum(file.stat().st_size for file in (tmp_path / "kept").glob("*.safetensors"))
    assert kept < 0.6 * sum(file.stat().st_size for file in (tmp_path / "base").glob("*.safetensors"))


def test_what_it_differs_from_must_be_there_and_the_same(tmp_path: Path) -> None:
    base = released(tmp_path / "base")
    difference.keep(load_initial_model(base), base, tmp_path / "kept")
    other = replace(CONFIG, layers=2)
    for shape in (other, replace(CONFIG, heads=4)):
        with pytest.raises(ConfigError, match="not of the shape"):
            difference.keep(build_model(shape), base, tmp_path / "none")
    released(tmp_path / "base", other)
    with pytest.raises(ModelFileError, match="differs from a model of fingerprint"):
        load_initial_model(str(tmp_path / "kept"))
    (tmp_path / "kept" / difference.FACTS).write_text("{}")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_initial_model(str(tmp_path / "kept"))


def test_the_command_keeps_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = released(tmp_path / "base")
    assert portable_state.main(["keep", str(tmp_path / "kept"), base, "--base", base]) == 0
    assert load_initial_model(str(tmp_path / "kept"))
    assert portable_state.main(["keep", str(tmp_path / "none"), str(tmp_path / "nothing")]) == 2
    assert "neither a job's folder" in capsys.readouterr().err


def test_what_is_kept_can_be_released(tmp_path: Path) -> None:
    base = released(tmp_path / "base")
    difference.keep(load_initial_model(base), base, tmp_path / "kept")
    job = tmp_path / "release.yaml"
    job.write_text(yaml.safe_dump({"run": str(tmp_path / "kept"), "folder": str(tmp_path / "model")}))
    assert main(["release", "--config", str(job)]) == 0
    found, kept = (load_initial_model(str(tmp_path / name)).state_dict() for name in ("model", "kept"))
    assert all(torch.equal(found[name], kept[name]) for name in kept)
    assert f"kept_in: {tmp_path / 'kept'}" in (tmp_path / "model" / "model.yaml").read_text()


@pytest.mark.parametrize("folder", sorted((REPOSITORY / "states").glob("*")), ids=lambda folder: folder.name)
def test_every_state_of_the_repository_can_be_begun_with(folder: Path) -> None:
    base = load_initial_model(
        str(REPOSITORY / json.loads((folder / "difference.json").read_text())["base"])
    ).state_dict()
    kept = load_initial_model(str(folder)).state_dict()
    assert base.keys() == kept.keys()
    assert any(not torch.equal(base[name], kept[name]) for name in base)

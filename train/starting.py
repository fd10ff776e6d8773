"""Where a job's model comes from: an earlier job's checkpoint, or a released model."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import yaml
from torch import nn

from l2m_core.errors import ConfigError, ModelFileError
from l2m_core.learn.checkpoints import load_checkpoint, load_tensors
from l2m_core.model.interface import ModelConfig, build


def load_initial(init: str, device: torch.device | str = "cpu") -> nn.Module:
    """The model of a job's folder (its newest whole checkpoint), of one checkpoint, or of a released model's folder.

    Of a checkpoint the running average of the weights is taken: that is what gets released.
    """
    folder = Path(init)
    if not folder.is_dir():
        raise ConfigError(f"init: there is no folder {init}; give a job's folder, a checkpoint or a released model.")
    if (folder / "checkpoints").is_dir():
        folder, facts = load_checkpoint(folder / "checkpoints")
        settings, name = facts["model"], "average"
    elif (folder / "state.json").is_file():
        settings, name = json.loads((folder / "state.json").read_text())["model"], "average"
    else:
        settings, name = _released_settings(folder), "weights"
    model = build(ModelConfig.from_dict(settings))
    weights = load_tensors(folder, name)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(f"The weights in {folder} do not fit the model that is described beside them.") from error
    return model.to(device)


def train_only(model: nn.Module, *parts: str) -> None:
    """Parameters under the named parts may move; all others are frozen."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.split(".")[0] in parts)


def _released_settings(folder: Path) -> dict:
    path = folder / "config.yaml"
    if not path.is_file():
        raise ConfigError(f"init: {folder} holds neither checkpoints nor a released model (config.yaml and weights).")
    settings = yaml.safe_load(path.read_text())
    if not isinstance(settings, dict) or not isinstance(settings.get("model"), dict):
        raise ModelFileError(f"{path} does not describe a model: it needs a mapping `model`.")
    return settings["model"]

"""The model that a job starts from: an earlier job's checkpoint, or a released model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from l2m_core.answering.release import FACTS, load_release
from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import find_checkpoint, load_model
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.paths import model_folders

HEADS = ("policy", "gain")


def load_initial_model(init: str, device: torch.device | str = "cpu") -> nn.Module:
    """The model of a job's folder (its newest whole checkpoint), of one checkpoint, or a released one (name, folder)."""
    folder = Path(init)
    checkpoint = find_checkpoint(folder)
    if checkpoint is not None:
        return load_model(*checkpoint).to(device)
    if init in model_folders() or (folder / FACTS).is_file():
        return load_release(init, device).module.requires_grad_(True).train()
    raise ConfigError(f"init: {init!r} is neither a job's folder with checkpoints, a checkpoint, nor a released model.")


def add_vote_head(model: nn.Module) -> nn.Module:
    """The cells model with a vote (see ModelConfig.vote) that attends as the last block does and changes nothing yet."""
    config: ModelConfig = model.config  # type: ignore[assignment]
    if config.encoder != "cells" or config.vote:
        raise ConfigError("add_vote: the initial model must be of cells, without a vote of its own.")
    grown = build_model(replace(config, vote=True))
    grown.load_state_dict(model.state_dict(), strict=False)
    block, vote = grown.blocks[-1], grown.vote  # type: ignore[index]
    vote.norm.load_state_dict(block.down_norm.state_dict())  # type: ignore[union-attr]
    vote.to_q.load_state_dict(block.down.to_q.state_dict())  # type: ignore[union-attr]
    vote.sharpen.data.copy_(block.sharpen.data)  # type: ignore[union-attr]
    return grown


def with_fresh_weights(model: nn.Module) -> nn.Module:
    """A model of the same shape with fresh weights, drawn from torch's global generator."""
    return build_model(model.config)  # type: ignore[arg-type]


def freeze_all_but(model: nn.Module, *parts: str) -> None:
    """Only the parameters of the named parts are trained."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.split(".")[0] in parts)

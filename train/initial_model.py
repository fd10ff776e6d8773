"""The model that a job starts from: an earlier job's checkpoint, or a released model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from l2m_core.answering.release import FACTS, load_release
from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import find_checkpoint, load_model
from l2m_core.model.by_outcome import join, networks, part_of
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.paths import is_released
from l2m_core.settings import build_settings, to_plain
from train import difference

HEADS = ("policy", "gain")
APART = "continuous_apart"


def load_initial_model(init: str, device: torch.device | str = "cpu", setting: str = "init") -> nn.Module:
    """The model of a job's folder (its newest whole checkpoint), of one checkpoint, a released one (name, folder), or one that is
    kept as its difference from a released one. setting: what names it, for messages."""
    folder = Path(init)
    checkpoint = find_checkpoint(folder)
    if checkpoint is not None:
        return load_model(*checkpoint).to(device)
    if (folder / difference.FACTS).is_file():
        return difference.load(folder).to(device)
    if is_released(init) or (folder / FACTS).is_file():
        return load_release(init, "cpu").module.to(device).requires_grad_(True).train()
    raise ConfigError(f"{setting}: {init!r} is neither a job's folder with checkpoints, a checkpoint, nor a model.")


GROWS = ("layers", "vote", "value_bins", APART)  # of a ModelConfig


def grow_model(model: nn.Module, changes: dict[str, Any]) -> nn.Module:
    """The cells model with more layers, a vote, a head that foresees results, or a network of its own for continuous outcomes;
    where it has one, both grow. At first it answers as before."""
    config: ModelConfig = model.config  # type: ignore[assignment]
    for name in changes:
        if name not in GROWS:
            raise ConfigError(f"grow: a model cannot grow {name!r}; it can grow {', '.join(GROWS)}.")
        if getattr(config, name) and name != "layers":
            raise ConfigError(f"grow: the initial model has {name} of its own already.")
    if config.encoder != "cells":
        raise ConfigError("grow: the initial model must be of cells.")
    if config.continuous_apart:
        return join(*(grow_model(network, changes) for network in networks(model)))
    if changes.get(APART):
        model = grow_model(model, {name: value for name, value in changes.items() if name != APART})
        return join(model, model)
    grown = build_model(build_settings(ModelConfig, {**to_plain(config), **changes}, "model"))
    if len(grown.blocks) < len(model.blocks):  # type: ignore[arg-type]
        raise ConfigError(f"grow.layers is {changes['layers']}; the initial model has {config.layers} already.")
    spread = _spread_blocks(model.state_dict(), config.layers, len(grown.blocks))  # type: ignore[arg-type]
    grown.load_state_dict(spread, strict=False)
    if grown.vote is not None and not config.vote:
        # It begins by attending as the last block does; its weights of 0 keep it silent.
        block, vote = grown.blocks[-1], grown.vote  # type: ignore[index]
        vote.norm.load_state_dict(block.down_norm.state_dict())  # type: ignore[union-attr]
        vote.to_q.load_state_dict(block.down.to_q.state_dict())  # type: ignore[union-attr]
        vote.sharpen.data.copy_(block.sharpen.data)  # type: ignore[union-attr]
    return grown


def _spread_blocks(state: dict[str, Tensor], before: int, after: int) -> dict[str, Tensor]:
    """The state with its blocks spread evenly over `after` positions, the first and the last at the ends.

    A fresh block between them adds nothing to its tokens, so the model answers as before.
    """
    position = torch.linspace(0, after - 1, before).round().long().tolist() if before > 1 else [after - 1]
    spread = {}
    for name, tensor in state.items():
        part, _, rest = name.partition(".")
        index, _, parameter = rest.partition(".")
        spread[f"blocks.{position[int(index)]}.{parameter}" if part == "blocks" else name] = tensor
    return spread


def refuse_another_shape(setting: str, model: nn.Module, other: nn.Module) -> None:
    """Refuses `other`, which `setting` names, where its weights mean something else than the model's: with other heads
    they do, though all tensors have the same shapes."""
    own, others = (to_plain(replace(each.config, standardise=True)) for each in (model, other))  # type: ignore[type-var]
    different = ", ".join(f"{name} is {others[name]!r}, not {own[name]!r}" for name in own if own[name] != others[name])
    if different:
        raise ConfigError(
            f"{setting}: the two models are not of one shape: {different}. Name a model of the same shape."
        )


def forget_policy(model: nn.Module) -> None:
    """Gives it policy heads of fresh weights, drawn from torch's global generator."""
    fresh = build_model(model.config)  # type: ignore[arg-type]
    for network, other in zip(networks(model), networks(fresh), strict=True):
        network.policy.load_state_dict(other.policy.state_dict())  # type: ignore[union-attr, operator]


def freeze(model: nn.Module, *parts: str) -> None:
    """The parameters of the named parts are not trained."""
    for name, parameter in model.named_parameters():
        if part_of(name) in parts:
            parameter.requires_grad_(False)


def freeze_all_but(model: nn.Module, *parts: str) -> None:
    """Only the parameters of the named parts are trained."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(part_of(name) in parts)

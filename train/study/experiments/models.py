"""Models that an experiment trains for itself, instead of a released one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from l2m_core.answering.devices import ON_CPU, for_training
from l2m_core.answering.release import Release
from l2m_core.answering.settings import AnswerSettings
from l2m_core.errors import ConfigError
from l2m_core.learn.loop import Loop, LoopConfig
from l2m_core.learn.stages import EpisodeStream
from l2m_core.memory import L2M, load


def with_module(model: L2M, module: nn.Module, name: str, policy: str | None = None) -> L2M:
    """The model with another module in it, which is on the CPU, and perhaps another default policy."""
    release = model.release
    inference = release.inference
    if policy:
        inference = AnswerSettings(temperature=1.0, policy=policy, class_order=inference.class_order)
    changed: Release = replace(
        release,
        name=name,
        module=module.eval().requires_grad_(False),
        config=module.config,  # type: ignore[arg-type]
        inference=inference,
        fingerprint=fingerprint(module),
        device=ON_CPU,
        spare=None,
    )
    return L2M(changed)


def fingerprint(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        digest.update(name.encode() + value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def load_own_copy(name: str, device: str = "cpu") -> L2M:
    """A model of one's own to change: not the one that others share."""
    return load(name, device)


def training_device(asked: str) -> str:
    """Chosen and checked by the process that will train: of a cluster, only some machines have a GPU."""
    device = for_training(asked)
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(
            f"device is {device!r}, and no GPU is at hand; device=cpu trains on the processor, which takes far longer."
        )
    return device


def teach(
    module: nn.Module,
    loss: nn.Module,
    stream: EpisodeStream,
    config: LoopConfig,
    folder: Path,
    facts: dict[str, Any],
    rate_of: Callable[[str], float] | None = None,
) -> None:
    """Trains the module in place, to its averaged weights; goes on from the folder's checkpoints if there are any."""
    loop = Loop(loss, stream.episode, stream.stages, config, folder, facts=facts, rate_of=rate_of, quiet=True)
    if (folder / "checkpoints").is_dir():
        loop.resume()
    loop.run()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(loop.average[name])

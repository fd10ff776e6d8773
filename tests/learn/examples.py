"""Small episodes and loops that take milliseconds."""

from __future__ import annotations

from pathlib import Path

import torch

from l2m_core.learn.loop import Loop, LoopConfig
from l2m_core.learn.losses import PredictorLoss
from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.tasks.registry import build_prior

STAGES = (
    Stage(steps=9, tasks=4, rows=(24,), features=(3, 4), continuous=0.3),
    Stage(steps=40, tasks=4, rows=(24,), features=(4,), continuous=0.3, lr=(1.0, 0.1)),
)


def priors() -> dict:
    return {kind: build_prior("bnn", {"outcome": kind}) for kind in ("classes", "continuous")}


def stream(seed: int = 0, stages: tuple[Stage, ...] = STAGES) -> EpisodeStream:
    return EpisodeStream(priors(), stages, seed)


def fresh_model(seed: int = 0, **settings) -> torch.nn.Module:
    torch.manual_seed(seed)
    settings = {"layers": 2, "width": 16, "heads": 2, "feedforward": 24, "max_classes": 2, "bins": 8, **settings}
    return build_model(ModelConfig(**settings))


def shaken_model(seed: int = 0, **settings) -> torch.nn.Module:
    """Far from its start, where heads of zeros let no gradient through."""
    model = fresh_model(seed, **settings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def small_loop(folder: Path | None, seed: int = 0, draw=None, loss=None, stages=STAGES, **settings) -> Loop:
    options = {name: settings.pop(name) for name in ("evaluate", "stopping", "rate_of", "facts") if name in settings}
    config = LoopConfig(**{"warmup": 3, "evaluate_every": 0, "log_every": 1, **settings})
    loss = loss or PredictorLoss(fresh_model(seed))
    return Loop(loss, draw or stream(seed).episode, stages, config, folder, quiet=True, **options)


def weights(loop: Loop) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in loop.model.named_parameters()}


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    """Bit for bit."""
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)

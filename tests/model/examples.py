"""Tiny models with weights far from their start, and random contexts and queries for them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from l2m_core.learn.stages import seeded
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import Context, ModelConfig, Output

KINDS = [(encoder, outcome) for encoder in ("cells", "rows") for outcome in ("classes", "continuous")]
FEATURES = 5
CLASSES = 3


def tiny_model(encoder: str, outcome: str, seed: int = 0, **settings) -> torch.nn.Module:
    """Every weight is shaken, so that no zero at the start hides a leak."""
    if encoder == "rows":
        settings = {"features": FEATURES, "outcome": outcome, **settings}
    else:
        settings = {"vote": outcome == "classes", **settings}
    config = ModelConfig(
        encoder=encoder, layers=2, width=16, heads=2, feedforward=24, max_classes=CLASSES, bins=8, **settings
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = build_model(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


@dataclass(frozen=True)
class Example:
    """Two tasks; x: (2, n, d) and a: (2, n, d) are the queries."""

    context: Context
    x: Tensor
    a: Tensor


def draw_example(outcome: str, seed: int, rows: int = 12, queries: int = 5, features: int = FEATURES) -> Example:
    generator = seeded("cpu", seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    x, r = normal(2, rows, features), torch.rand(2, rows, features, generator=generator) < 0.7
    x[..., 1] = x[..., 1].round()  # ties
    if outcome == "classes":
        y = torch.randint(CLASSES, (2, rows), generator=generator)
        context = Context(x, r, y, torch.full((2,), CLASSES), torch.zeros(2, features, dtype=torch.bool))
    else:
        context = Context(x, r, 10 + 5 * normal(2, rows), None, torch.zeros(2, features, dtype=torch.bool))
    a = torch.rand(2, queries, features, generator=generator) < 0.5
    return Example(context, normal(2, queries, features), a)


def answers(output: Output) -> Tensor:
    """Everything an output says, side by side: (B, n, …)."""
    return torch.cat([output.prediction, output.policy, output.gain], dim=-1)

"""A MAML-like model: on top of the same backbone, the prediction head takes gradient steps on each task's context.

The context is split in two. The backbone reads one half and is asked about the other, of which random parts are hidden;
the head's weights go a few steps down that loss; then the whole context is read, and queries are answered by the
adapted head. In pretraining the step sizes and the head's starting point are learned through the adapted head (first
order: the inner gradient counts as a constant).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from l2m_core.learn.losses import log_loss
from l2m_core.learn.stages import seeded
from l2m_core.model.cells import Cells
from l2m_core.model.heads import keep_possible_classes, to_gain
from l2m_core.model.interface import Context, Memory, ModelConfig, Output

PREFIX = "adapted."


class InnerUpdates(nn.Module):
    """`Cells` whose prediction head adapts to each context; the same face as `Cells`.

    backbone: what reads the context; the study adapts its CNP-like model, `PooledCells`.
    """

    def __init__(self, config: ModelConfig, steps: int = 3, backbone: type[Cells] = Cells):
        super().__init__()
        self.config = config
        self.cells = backbone(config)
        self.steps = steps
        # softplus(-2.25) ≈ 0.1: one step size for each inner step.
        self.rates = nn.Parameter(torch.full((steps,), -2.25))

    def condition(self, context: Context, chunk: int | None = None, rank: bool = True, **how: Any) -> Memory:
        """how: see Encoder."""
        memory = self.cells.condition(context, chunk, rank, **how)
        # Conditioning runs in inference mode; the inner steps need gradients whatever the caller needs.
        with torch.inference_mode(False), torch.enable_grad():
            extras = self.adapt(_without_inference_tensors(context))
        return replace(memory, extras={PREFIX + name: value for name, value in extras.items()})

    def query(self, memory: Memory, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True) -> Output:
        tokens = self.cells.encode_query(memory, x, a, reveal, rank)
        outcome, features = tokens[:, :, 0], tokens[:, :, 1:]
        adapted = {name.removeprefix(PREFIX): value for name, value in memory.extras.items() if name.startswith(PREFIX)}
        prediction = self._predict(adapted, outcome, memory.n_classes)
        gains = to_gain(self.cells.gain(features, outcome))
        return Output(prediction, self.cells.policy(features, outcome), gains)

    def _head(self, n_classes: Tensor | None) -> nn.Module:
        return self.cells.density if n_classes is None else self.cells.classes

    def _predict(self, adapted: dict[str, Tensor], outcome: Tensor, n_classes: Tensor | None) -> Tensor:
        """adapted: (B, …) weights of each task's own head; outcome: (B, n, width) → (B, n, K or bins)"""
        head = self._head(n_classes)
        raw = torch.stack(
            [
                functional_call(head, {name: w[b] for name, w in adapted.items()}, (outcome[b],))
                for b in range(len(outcome))
            ]
        )
        return raw if n_classes is None else keep_possible_classes(raw, n_classes)

    def adapt(self, context: Context) -> dict[str, Tensor]:
        """(B, …) the head's weights after the inner steps."""
        B, N, _ = context.x.shape
        read, asked = _rows(context, slice(0, N - N // 2)), _rows(context, slice(N - N // 2, N))
        head = self._head(context.n_classes)
        start = {name: p.unsqueeze(0).expand(B, *p.shape) for name, p in head.named_parameters()}
        with torch.no_grad():
            memory = self.cells.condition(read, rank=False)
            # Which parts are hidden follows from the shape alone, so that a context has one memory.
            hide = torch.rand(asked.x.shape, generator=seeded(asked.x.device, B, N), device=asked.x.device)
            share = torch.rand((B, asked.x.shape[1], 1), generator=seeded(hide.device, N, B), device=hide.device)
            outcome = self.cells.encode_query(memory, asked.x, asked.r & (hide < share), rank=False)[:, :, 0]
        rates = F.softplus(self.rates)
        weights = start
        for step in range(self.steps):
            moving = {name: w.detach().requires_grad_() for name, w in weights.items()}
            output = Output(self._predict(moving, outcome, context.n_classes), outcome, outcome)
            # Summed over tasks: each task's head sees its own mean loss only.
            loss = log_loss(output, memory, asked.y).mean(1).sum()
            slopes = torch.autograd.grad(loss, list(moving.values()))
            weights = {
                name: w - rates[step] * slope.detach() for (name, w), slope in zip(weights.items(), slopes, strict=True)
            }
        return weights


def _without_inference_tensors(context: Context) -> Context:
    """Copies of tensors that were made in the caller's inference mode, which autograd refuses."""
    changed = {
        name: value.clone()
        for name, value in vars(context).items()
        if isinstance(value, Tensor) and value.is_inference()
    }
    return replace(context, **changed)


def _rows(context: Context, part: slice) -> Context:
    return replace(context, x=context.x[:, part], r=context.r[:, part], y=context.y[:, part])

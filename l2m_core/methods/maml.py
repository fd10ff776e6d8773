"""A MAML-like model: on top of the same backbone, prediction and policy heads take gradient steps on each task's context.

The context is split in two. The backbone reads one half and is asked about the other, of which random parts are hidden.
The prediction head's weights go a few steps down the log loss there, the policy head's down the log loss that one more
feature, picked by it, would leave. Then the whole context is read, and queries are answered by the adapted heads. In
pretraining the step sizes and the heads' starting points are learned through the adapted heads (first order: the inner
gradient counts as a constant).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from l2m_core.learn.losses import log_loss
from l2m_core.learn.picks import open_softmax
from l2m_core.learn.stages import seeded
from l2m_core.methods.cnp import PooledRows
from l2m_core.model.cells import Cells
from l2m_core.model.heads import keep_possible_classes
from l2m_core.model.interface import Context, Memory, ModelConfig, Output
from l2m_core.model.rows import Rows

PREDICTION, POLICY = "adapted.", "adapted policy."
"""How the names of the adapted weights begin, among a memory's extras."""
Weights = dict[str, Tensor]
"""A head's, one for each task: (B, …)."""


class InnerUpdates(nn.Module):
    """An encoder whose heads adapt to each context; the same face.

    backbone: what reads the context; the study adapts its CNP-like model.
    """

    def __init__(
        self, config: ModelConfig, steps: int = 3, backbone: type[Cells] | type[Rows] | type[PooledRows] = Cells
    ):
        super().__init__()
        self.config = config
        self.backbone = backbone(config)
        self.steps = steps
        # softplus(-2.25) ≈ 0.1: one step size for each inner step of each head.
        self.rates = nn.Parameter(torch.full((steps,), -2.25))
        self.policy_rates = nn.Parameter(torch.full((steps,), -2.25))

    def condition(self, context: Context, chunk: int | None = None, rank: bool = True, **how: Any) -> Memory:
        """Without `rank` the policy head stays as it is. how: see Encoder."""
        memory = self.backbone.condition(context, chunk, rank, **how)
        # Conditioning runs in inference mode; the inner steps need gradients whatever the caller needs.
        with torch.inference_mode(False), torch.enable_grad():
            extras = self.adapt(_without_inference_tensors(context), rank)
        return replace(memory, extras=extras)

    def query(self, memory: Memory, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True) -> Output:
        tokens = self.backbone.encode_query(memory, x, a, reveal, rank)
        output = self.backbone.read_out(tokens, memory, x.shape[-1] if rank else 0)
        prediction = self._predict(_of(memory.extras, PREDICTION), tokens, memory.n_classes)
        policy = _of(memory.extras, POLICY)
        scores = self._score(policy, tokens, x.shape[-1]) if policy and rank else output.policy
        return replace(output, prediction=prediction, policy=scores)

    def adapt(self, context: Context, rank: bool = True) -> Weights:
        """The heads' weights after the inner steps, under the names that a memory keeps them by."""
        B, N, d = context.x.shape
        read, asked = _rows(context, slice(0, N - N // 2)), _rows(context, slice(N - N // 2, N))
        # Which parts are hidden follows from the shape alone, so that a context has one memory.
        hide = torch.rand(asked.x.shape, generator=seeded(asked.x.device, B, N), device=asked.x.device)
        share = torch.rand((B, asked.x.shape[1], 1), generator=seeded(hide.device, N, B), device=hide.device)
        known = asked.r & (hide < share)
        with torch.no_grad():
            memory = self.backbone.condition(read, rank=rank)
            tokens = self.backbone.encode_query(memory, asked.x, known, rank=rank)
            left = self._losses_left(memory, asked, known) if rank else torch.empty(0)

        def missed(weights: Weights) -> Tensor:
            # Summed over tasks: each task's head sees its own mean loss only.
            output = Output(self._predict(weights, tokens, context.n_classes), tokens, tokens)
            return log_loss(output, memory, asked.y).mean(1).sum()

        def left_over(weights: Weights) -> Tensor:
            chance = open_softmax(self._score(weights, tokens, d), asked.r & ~known)
            return (chance * left).sum(-1).mean(1).sum()

        found = self._descend(self.backbone.prediction_head(context.n_classes), self.rates, missed, B)
        adapted = {PREDICTION + name: value for name, value in found.items()}
        if rank:
            found = self._descend(self.backbone.policy, self.policy_rates, left_over, B)
            adapted |= {POLICY + name: value for name, value in found.items()}
        return adapted

    def _descend(self, head: nn.Module, rates: Tensor, loss_of: Callable[[Weights], Tensor], tasks: int) -> Weights:
        """The head's weights after its steps down `loss_of`, for each task its own."""
        weights = {name: p.unsqueeze(0).expand(tasks, *p.shape) for name, p in head.named_parameters()}
        for rate in F.softplus(rates)[: self.steps]:
            moving = {name: w.detach().requires_grad_() for name, w in weights.items()}
            slopes = torch.autograd.grad(loss_of(moving), list(moving.values()))
            weights = {
                name: w - rate * slope.detach() for (name, w), slope in zip(weights.items(), slopes, strict=True)
            }
        return weights

    def _losses_left(self, memory: Memory, asked: Context, known: Tensor) -> Tensor:
        """(B, n, d) log loss once feature j is known as well."""
        losses = []
        for j in range(asked.x.shape[-1]):
            more = known.clone()
            more[..., j] |= asked.r[..., j]
            losses.append(log_loss(self.backbone.query(memory, asked.x, more, rank=False), memory, asked.y))
        return torch.stack(losses, -1)

    def _predict(self, weights: Weights, tokens: Tensor, n_classes: Tensor | None) -> Tensor:
        """(B, n, K or bins), by each task's own head."""
        head = self.backbone.prediction_head(n_classes)
        raw = _by_task(head, weights, (self.backbone.outcome_token(tokens),))
        return raw if n_classes is None else keep_possible_classes(raw, n_classes)

    def _score(self, weights: Weights, tokens: Tensor, features: int) -> Tensor:
        """(B, n, d) policy logits, by each task's own head."""
        return _by_task(self.backbone.policy, weights, self.backbone.policy_tokens(tokens))[..., :features]


def _by_task(head: nn.Module, weights: Weights, inputs: tuple[Tensor, ...]) -> Tensor:
    """inputs: (B, …) each → the head's outputs, task by task with the task's own weights."""
    tasks = range(len(inputs[0]))
    own = [({name: w[b] for name, w in weights.items()}, tuple(i[b : b + 1] for i in inputs)) for b in tasks]
    return torch.cat([functional_call(head, named, given) for named, given in own])


def _of(extras: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): value for name, value in extras.items() if name.startswith(prefix)}


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

"""Muon for the matrices inside the transformer's blocks, AdamW for everything else, behind one object.

AdamW alone stays at the base rate for thousands of tasks on this problem; orthogonalised updates leave it at once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from l2m_core.errors import ConfigError


class Muon(torch.optim.Optimizer):
    """Momentum whose update is brought to the nearest orthogonal matrix, scaled to AdamW's size of step."""

    def __init__(self, params, lr: float = 2e-3, momentum: float = 0.95, weight_decay: float = 0.01):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            same_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    same_shape[parameter.shape].append(parameter)
            for parameters in same_shape.values():
                self._step_together(parameters, group)

    def _step_together(self, parameters: list[Tensor], group: dict) -> None:
        """All matrices of one shape in one batched orthogonalisation."""
        updates = []
        for parameter in parameters:
            state = self.state[parameter]
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(parameter)
            gradient = parameter.grad
            assert gradient is not None  # only parameters with a gradient were gathered
            # m ← β m + (1 - β) g
            state["momentum"].lerp_(gradient, 1 - group["momentum"])
            # Nesterov: the update looks one step ahead, (1 - β) g + β m.
            updates.append(gradient.lerp(state["momentum"], group["momentum"]))
        orthogonal = orthogonalise(torch.stack(updates))
        # An orthogonal (r, c) matrix has entries of root mean square 1 / sqrt(max(r, c)). This factor makes it 0.2,
        # about what AdamW's updates have, so both optimisers share one learning rate and one decay.
        size = 0.2 * math.sqrt(max(orthogonal.shape[-2:]))
        for parameter, update in zip(parameters, orthogonal, strict=True):
            # Decoupled weight decay, as in AdamW.
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            parameter.add_(update.to(parameter.dtype), alpha=-group["lr"] * size)


def orthogonalise(matrices: Tensor, steps: int = 5) -> Tensor:
    """(m, rows, columns) → about U Vᵀ of each, by a quintic Newton–Schulz iteration in bf16."""
    x = matrices.to(torch.bfloat16)
    # X Xᵀ is formed below: work on the flatter side, so that it is the smaller of the two Gram matrices.
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.transpose(-1, -2)
    # The iteration converges for singular values in 0 … 1; the Frobenius norm bounds the largest one.
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(steps):
        # X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X maps each singular value s to a s + b s³ + c s⁵ and leaves U and V alone.
        # These coefficients push all of them near 1 in five steps: fast, and not exact, which an update need not be.
        # bfloat16 does, as errors do not build up.
        gram = x @ x.transpose(-1, -2)
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.transpose(-1, -2) if tall else x


class MuonAdamW:
    """One face over two optimisers; each group keeps its own peak learning rate, all follow one schedule.

    rate_of: share of the learning rate by a parameter's name (default: 1 for all).
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2e-3,
        weight_decay: float = 0.01,
        muon: bool = True,
        rate_of: Callable[[str], float] | None = None,
        beta2: float = 0.98,
    ):
        inside, outside = split_parameters(model, muon)
        self.parts: list[torch.optim.Optimizer] = []
        if inside:
            self.parts.append(Muon(_groups(inside, lr, rate_of), weight_decay=weight_decay))
        if outside:
            groups = _groups(outside, lr, rate_of)
            self.parts.append(torch.optim.AdamW(groups, betas=(0.9, beta2), weight_decay=weight_decay))
        if not self.parts:
            raise ConfigError("No parameter may move: everything is frozen.")
        # The schedule multiplies each group's own peak, so the shares given by `rate_of` are kept.
        self.peaks = [[group["lr"] for group in part.param_groups] for part in self.parts]

    def step(self, scale: float) -> None:
        """One step at `scale` times the peak rate."""
        for part, peaks in zip(self.parts, self.peaks, strict=True):
            for group, peak in zip(part.param_groups, peaks, strict=True):
                group["lr"] = peak * scale
            part.step()

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def state_dict(self) -> list[dict]:
        return [part.state_dict() for part in self.parts]

    def load_state_dict(self, state: list[dict]) -> None:
        for part, part_state in zip(self.parts, state, strict=True):
            part.load_state_dict(part_state)


Named = list[tuple[str, nn.Parameter]]


def split_parameters(model: nn.Module, muon: bool = True) -> tuple[Named, Named]:
    """Matrices inside `blocks` (for Muon), and all the rest; frozen ones are in neither."""
    inside: list[tuple[str, nn.Parameter]] = []
    outside: list[tuple[str, nn.Parameter]] = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        # Muon is for linear maps between hidden activations. Embeddings, read-outs, norms and biases are no such maps
        # and stay with AdamW.
        is_inside = muon and ".blocks." in f".{name}" and parameter.ndim == 2
        (inside if is_inside else outside).append((name, parameter))
    return inside, outside


def _groups(named: Named, lr: float, rate_of: Callable[[str], float] | None) -> list[dict]:
    """One group for each share of the learning rate."""
    by_rate: dict[float, list[nn.Parameter]] = defaultdict(list)
    for name, parameter in named:
        by_rate[rate_of(name) if rate_of else 1.0].append(parameter)
    return [{"params": parameters, "lr": lr * rate} for rate, parameters in by_rate.items()]

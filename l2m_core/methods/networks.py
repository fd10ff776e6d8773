"""Small networks on masked rows: layers, heads for each kind of outcome, and training with early stopping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from l2m_core.errors import TrainingError
from l2m_core.tabular.predictions import LOG_TWO_PI, Gaussian, Prediction
from l2m_core.tabular.preparation import Context

SMALLEST_STD = 0.05
"""Floor of a predicted standard deviation, in standard deviations of the outcome."""


def uniform(shape: tuple[int, ...], fan_in: int, generator: torch.Generator) -> nn.Parameter:
    """A parameter within the bounds of torch's own linear layers, drawn from the given generator instead of the global one."""
    bound = fan_in**-0.5
    return nn.Parameter((2 * torch.rand(shape, generator=generator) - 1) * bound)


class Network(nn.Module):
    """Two hidden layers with ReLU and dropout. Weights and dropout draw from the given generator only."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator, hidden: int = 128, dropout: float = 0.0):
        super().__init__()
        self.generator = generator
        self.keep = 1.0 - dropout
        sizes = [(inputs, hidden), (hidden, hidden), (hidden, outputs)]
        self.weights = nn.ParameterList([uniform((n_out, n_in), n_in, generator) for n_in, n_out in sizes])
        self.biases = nn.ParameterList([uniform((n_out,), n_in, generator) for n_in, n_out in sizes])

    def forward(self, z: Tensor) -> Tensor:
        """(n, inputs) → (n, outputs)"""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            z = functional.relu(functional.linear(z, weight, bias))
            if self.training and self.keep < 1:
                # Inverted dropout: dividing by the share kept leaves the expected input of the next layer as it is in evaluation.
                z = z * (torch.rand(z.shape, generator=self.generator) < self.keep) / self.keep
        return functional.linear(z, self.weights[-1], self.biases[-1])


class DuelingNetwork(Network):
    """Q(s, j) = V(s) + A(s, j) − mean over j of A(s, j)."""

    def __init__(self, inputs: int, actions: int, generator: torch.Generator, hidden: int = 128):
        super().__init__(inputs, actions + 1, generator, hidden)

    def forward(self, z: Tensor) -> Tensor:
        """(n, inputs) → (n, actions)"""
        value, advantage = super().forward(z).split([1, self.biases[-1].shape[0] - 1], dim=-1)
        # V and A could trade any constant; with the mean advantage at 0 they cannot.
        return value + advantage - advantage.mean(-1, keepdim=True)


class ApartDuelingNetwork(nn.Module):
    """The same with V and A networks of their own."""

    def __init__(self, inputs: int, actions: int, generator: torch.Generator, hidden: int = 128):
        super().__init__()
        self.value = Network(inputs, 1, generator, hidden)
        self.advantage = Network(inputs, actions, generator, hidden)

    def forward(self, z: Tensor) -> Tensor:
        """(n, inputs) → (n, actions)"""
        advantage = self.advantage(z)
        return self.value(z) + advantage - advantage.mean(-1, keepdim=True)


class ClassHead:
    """Raw outputs are logits of K classes."""

    def __init__(self, context: Context):
        self.outputs = context.n_classes

    def target(self, y: np.ndarray) -> Tensor:
        return torch.from_numpy(np.asarray(y, dtype=np.int64))

    def losses(self, raw: Tensor, target: Tensor) -> Tensor:
        """Negative log likelihood: (n, outputs), (n,) → (n,)"""
        return functional.cross_entropy(raw, target, reduction="none")

    def largest_drop(self, raw: Tensor) -> Tensor:
        """The entropy, in nats: no feature can lower the expected loss by more. (n,)"""
        # H(y) − E[H(y | x_j)] is at most H(y).
        log_probability = raw.log_softmax(-1)
        return -(log_probability.exp() * log_probability).sum(-1)

    def prediction(self, raw: Tensor) -> Prediction:
        return raw.double().softmax(-1).numpy()


class GaussianHead:
    """Raw outputs are the mean and the (softplus) standard deviation of the standardised outcome."""

    outputs = 2

    def __init__(self, context: Context):
        self.centre = float(context.y.mean())
        self.scale = float(context.y.std()) or 1.0

    def target(self, y: np.ndarray) -> Tensor:
        return torch.from_numpy(((np.asarray(y, dtype=np.float64) - self.centre) / self.scale).astype(np.float32))

    @staticmethod
    def _std(raw: Tensor) -> Tensor:
        # softplus(0.5) ≈ 0.97: an untrained network starts near the outcome's own spread.
        return functional.softplus(raw[..., 1] + 0.5) + SMALLEST_STD

    def losses(self, raw: Tensor, target: Tensor) -> Tensor:
        """Negative log likelihood of the standardised outcome: (n, 2), (n,) → (n,)"""
        std = self._std(raw)
        # −log N(y; μ, σ²) = (y − μ)² / 2σ² + log σ + ½ log 2π.
        return 0.5 * ((target - raw[..., 0]) / std) ** 2 + std.log() + 0.5 * LOG_TWO_PI

    def largest_drop(self, raw: Tensor) -> Tensor:
        """Entropy above that of the sharpest prediction the head can make, in nats. (n,)"""
        # Entropies of normals differ by the logarithm of the ratio of their standard deviations.
        return (self._std(raw) / SMALLEST_STD).log()

    def prediction(self, raw: Tensor) -> Prediction:
        raw = raw.double()
        return Gaussian((raw[:, 0] * self.scale + self.centre).numpy(), (self._std(raw) * self.scale).numpy())


Head = ClassHead | GaussianHead


def head_for(context: Context) -> Head:
    return GaussianHead(context) if context.continuous else ClassHead(context)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train."""

    epochs: int = 300
    """Passes over the rows, at most."""
    batch: int = 64
    """Rows in a step."""
    rate: float = 1e-3
    """Learning rate of Adam at the start."""
    plateau: int | None = None
    """Epochs without a better validation loss after which the rate falls to a fifth; None keeps the rate."""
    patience: int | None = None
    """Epochs without a better validation loss after which training ends; None trains all epochs."""
    weight_decay: float = 0.0
    """Decoupled decay of the weights."""
    least_steps: int = 1
    """Steps in an epoch, at least: few rows are passed over several times between two validations."""


def batches(n_rows: int, schedule: Schedule, random: np.random.Generator) -> list[np.ndarray]:
    """Row indices of the steps of one epoch: random passes over all rows, in batches of nearly equal size."""
    in_a_pass = max(1, round(n_rows / schedule.batch))
    passes = -(-schedule.least_steps // in_a_pass)
    return [batch for _ in range(passes) for batch in np.array_split(random.permutation(n_rows), in_a_pass)]


def train(
    modules: Sequence[nn.Module],
    epoch: Callable[[torch.optim.Optimizer], None],
    validate: Callable[[], float],
    schedule: Schedule,
    shares: Sequence[float] = (),
) -> float:
    """Run epochs, leave the modules as they were at the best validation loss, and return that loss.

    shares: for each module, the part of the learning rate that it gets; 1 if none are given.
    """
    group = nn.ModuleList(modules)
    rates = [schedule.rate * share for share in shares or [1.0] * len(modules)]
    optimizer = torch.optim.AdamW(
        [{"params": list(module.parameters()), "lr": rate} for module, rate in zip(modules, rates, strict=True)],
        weight_decay=schedule.weight_decay,
        fused=True,
    )
    best, best_state, since_best, since_drop = float("inf"), None, 0, 0
    for _ in range(schedule.epochs):
        group.train()
        epoch(optimizer)
        group.eval()
        with torch.no_grad():
            loss = validate()
        # A loss that is NaN is never lower, so such an epoch is never kept.
        if loss < best:
            best, since_best, since_drop = loss, 0, 0
            best_state = {name: tensor.clone() for name, tensor in group.state_dict().items()}
            continue
        since_best, since_drop = since_best + 1, since_drop + 1
        if schedule.plateau is not None and since_drop > schedule.plateau:
            since_drop = 0
            for parameters in optimizer.param_groups:
                parameters["lr"] *= 0.2
        if schedule.patience is not None and since_best > schedule.patience:
            break
    if best_state is None:
        raise TrainingError("No epoch gave a finite validation loss; lower the learning rate or check the outcome.")
    group.load_state_dict(best_state)
    return best


def gradient_step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step of the optimiser; a loss that is not finite is skipped."""
    if not torch.isfinite(loss):
        return
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()

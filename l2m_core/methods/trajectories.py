"""Random trajectories of acquisition, weighted, and what follows from them: a policy's loss and its gradient.

A stochastic policy π(j | x⊙a, a) acquires T features one by one; h_t = (x⊙a_t, a_t) is what it has seen before step t.
With ℓ_t the loss of the prediction after t acquisitions and w_t the weight of a trajectory up to there (1 when every
value is recorded; see ``ipw`` otherwise),

    J_t = E[ w_t ℓ_t ],                         the loss at t acquisitions
    J   = Σ_t c_t J_t,                          c: the share of each number of acquisitions in the objective
    ∇J  = E[ Σ_t ∇ log π(j_t | h_t) Σ_{s > t} c_s w_s (ℓ_s − ℓ_0) ].

ℓ_0, the loss before any acquisition, depends on no action: it lowers the variance and leaves the mean as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from l2m_core.errors import ConfigError
from l2m_core.learn.picks import gumbel, straight_through
from l2m_core.methods.masked import MaskedNetworkMethod

Policy = Callable[[Tensor, Tensor], Tensor]
"""(x⊙a (n, d), a (n, d) bool, or a relaxed one that carries a gradient) → logits (n, d)"""
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(x⊙a (n, d), a (n, d) bool, y (n,)) → the loss of each row's prediction (n,)"""
Step = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(π (n, d), r, x⊙a, a) → (the distribution to draw from (n, d), the factor of the weight if j is drawn (n, d))"""


@dataclass(frozen=True)
class Trajectories:
    """Of n rows, T steps each."""

    states: Tensor
    """(T + 1, n, d) bool: a"""
    actions: Tensor
    """(T, n) the feature acquired"""
    log_policy: Tensor
    """(T, n) log π of it, with its gradient"""
    weights: Tensor
    """(T + 1, n)"""
    losses: Tensor
    """(T + 1, n)"""

    def values(self, *, normalised: bool = False) -> Tensor:
        """(T + 1,) J_t. Normalised: divided by the mean weight, which trades a little bias for less variance."""
        totals = (self.weights * self.losses).mean(1)
        return totals / self.weights.mean(1).clamp(min=1e-12) if normalised else totals

    def surrogate(self, shares: Tensor | None = None) -> Tensor:
        """A scalar whose gradient estimates ∇J. shares: (T,) c of 1 … T acquisitions; equal ones if None."""
        steps = len(self.actions)
        shares = torch.full((steps,), 1 / steps) if shares is None else shares
        to_come = shares[:, None] * self.weights[1:] * (self.losses[1:] - self.losses[0])
        # (T, n): what follows step t, itself included
        to_come = to_come.flip(0).cumsum(0).flip(0)
        # A trajectory of weight 0 ended before this step, where log π may be -inf.
        log_policy = torch.where(to_come != 0, self.log_policy, torch.zeros_like(self.log_policy))
        return (log_policy * to_come.detach()).sum(0).mean()


def simulate(
    policy: Policy,
    loss: Loss,
    x: Tensor,
    y: Tensor,
    acquirable: Tensor,
    steps: int,
    generator: torch.Generator,
    step: Step,
) -> Trajectories:
    """Draw one trajectory for each row. x: (n, d), NaN where not recorded; baseline cells are known from the start.

    step: where actions are drawn from, and how they are weighted: `on_policy`, `ipw.offline_ipw`, `ipw.semi_offline_ipw`.
    """
    if not 1 <= steps <= int(acquirable.sum()):
        raise ConfigError(
            f"steps is {steps}; it must lie between 1 and the {int(acquirable.sum())} acquirable features."
        )
    r = ~torch.isnan(x)
    filled = torch.nan_to_num(x)
    a = r & ~acquirable
    weight = torch.ones(len(x))
    states, actions, log_policy, weights = [a], [], [], [weight]
    for _ in range(steps):
        logits = policy(filled * a, a).masked_fill(a | ~acquirable, -torch.inf)
        # π over what is not known yet, recorded or not: the policy does not know what the record lacks.
        log_probability = logits.log_softmax(-1)
        with torch.no_grad():
            draw_from, factor = step(log_probability.exp(), r, filled * a, a)
            alive = (draw_from.sum(-1) > 0) & (weight > 0)
            # A row whose trajectory has ended draws anything; its weight is 0.
            action = torch.multinomial(draw_from + 1e-30 * ~alive[:, None], 1, generator=generator)
            weight = weight * alive * factor.gather(1, action)[:, 0]
            a = a | (torch.zeros_like(a).scatter_(1, action, True) & (weight > 0)[:, None])
        states.append(a)
        actions.append(action[:, 0])
        log_policy.append(log_probability.gather(1, action)[:, 0])
        weights.append(weight)
    with torch.no_grad():
        losses = torch.stack([loss(filled * state, state, y) for state in states])
    return Trajectories(
        torch.stack(states), torch.stack(actions), torch.stack(log_policy), torch.stack(weights), losses
    )


def on_policy(probability: Tensor, r: Tensor, x: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """Every value is recorded: draw from the policy itself, weight 1."""
    return probability, torch.ones_like(probability)


def reinforce(
    policy: Policy,
    loss: Loss,
    x: Tensor,
    y: Tensor,
    acquirable: Tensor,
    steps: int,
    generator: torch.Generator,
    repeats: int = 1,
) -> Trajectories:
    """The reference: rows with every value recorded, ``repeats`` trajectories of each, no correction needed."""
    if torch.isnan(x[:, acquirable]).any():
        raise ConfigError("The reference estimator needs rows with every acquirable value recorded; use ipw otherwise.")
    return simulate(policy, loss, x.repeat(repeats, 1), y.repeat(repeats), acquirable, steps, generator, on_policy)


def gradient(parameters: Sequence[nn.Parameter], trajectories: Trajectories, shares: Tensor | None = None) -> Tensor:
    """∇J for the policy's parameters, flattened into one vector."""
    return flat_gradient(parameters, trajectories.surrogate(shares))


def flat_gradient(parameters: Sequence[nn.Parameter], scalar: Tensor) -> Tensor:
    """Of a scalar, as one vector; zeros for parameters that it does not depend on."""
    parts = torch.autograd.grad(scalar, list(parameters), allow_unused=True)
    return torch.cat(
        [(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(parameters, parts, strict=True)]
    )


def pathwise(
    policy: Policy,
    loss: Loss,
    x: Tensor,
    y: Tensor,
    acquirable: Tensor,
    steps: int,
    generator: torch.Generator,
    *,
    temperature: float,
    repeats: int = 1,
) -> Tensor:
    """A scalar whose gradient estimates ∇J by paths: straight-through Gumbel-softmax picks among what each row recorded.

    x: (n, d), NaN where not recorded. J is the mean of the losses after 1 … steps picks. A pick is one-hot on the way forward,
    and on the way back has the gradient of softmax((log π + Gumbel noise) / τ). `loss` must be differentiable in a.
    """
    x, y = x.repeat(repeats, 1), y.repeat(repeats)
    r, filled = ~torch.isnan(x), torch.nan_to_num(x)
    a = (r & ~acquirable).float()
    losses = []
    for _ in range(steps):
        open_cells = r & acquirable & (a.detach() < 0.5)
        noisy = policy(filled * a, a) + gumbel(torch.rand(a.shape, generator=generator))
        a = a + straight_through(noisy, open_cells, temperature)
        losses.append(loss(filled, a, y))
    return torch.stack(losses).mean()


def network_loss(method: MaskedNetworkMethod) -> Loss:
    """Negative log likelihood of a method whose predictor is a network, differentiable in a."""

    def loss(x: Tensor, a: Tensor, y: Tensor) -> Tensor:
        values = torch.from_numpy(method.encoding.values(x.numpy()))
        mask = a.float()
        raw = method.predictor(torch.cat([values * mask[:, method.encoding.owner], mask], dim=1))
        return method.head.losses(raw, method.head.target(y.numpy()))

    return loss

"""Latent covariates of the synthetic prior: z, (B, N, d), each column about standard normal in scale.

Every function draws B tasks at once. What a lab would print (skew, ties, codes) is added later by `marginals`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from l2m_core.tasks.draws import coin, integers, log_uniform, normal, standardise, uniform


@dataclass(frozen=True)
class Latent:
    """z: (B, N, d) covariates; score: (B, N, S) hidden causes or effects of them that a label may read;
    centres: (B, C, d) where the rows came from clusters."""

    z: Tensor
    score: Tensor | None = None
    centres: Tensor | None = None


def gaussian(generator: torch.Generator, tasks: int, rows: int, features: int) -> Latent:
    """Multivariate normal with a random number of shared factors and a random share of common variance."""
    factors = min(6, max(1, features // 2))
    loadings = normal(generator, (tasks, factors, features)) * coin(generator, (tasks, factors, features), 0.6)
    # A task may use any number of its factors; unused ones load nothing.
    used = torch.arange(factors, device=loadings.device) < integers(generator, (tasks, 1), 1, factors)
    loadings = loadings * used[..., None]
    common = normal(generator, (tasks, rows, factors)) @ loadings  # (B, N, d)
    size = loadings.square().sum(1, keepdim=True).sqrt().clamp_min(1e-6)
    share = uniform(generator, (tasks, 1, 1)) * uniform(generator, (tasks, 1, features), 0.3, 1.0)
    own = normal(generator, (tasks, rows, features))
    # Variance `share` from the factors, the rest of a feature's own: the sum is 1.
    z = share.sqrt() * common / size + (1 - share).sqrt() * own
    return Latent(z, score=common[..., :1] if factors else None)


def graph(generator: torch.Generator, tasks: int, rows: int, features: int) -> Latent:
    """A random layered structural network: each feature is one of its nodes, causes and effects mixed."""
    width = max(6, min(2 * features, 48))
    layers = 3
    roots = normal(generator, (tasks, rows, width))
    # Skewed roots in some tasks: a cause need not be normal.
    skewed = coin(generator, (tasks, 1, width), 0.3)
    roots = torch.where(skewed, standardise(roots.exp().clamp_max(8.0)), roots)
    nodes = [roots]
    # From nearly deterministic graphs to ones in which an effect hardly tells of its cause.
    noise = log_uniform(generator, (tasks, 1, 1), 0.02, 1.0)
    state = roots
    for _ in range(layers):
        # 1.5 to 5 parents for each node on average.
        sparsity = uniform(generator, (tasks, 1, 1), 1.5, 5.0) / width
        weights = normal(generator, (tasks, width, width)) * coin(generator, (tasks, width, width), sparsity)
        # Standardised before and after: a random function would else blow up or die out along the layers.
        state = standardise(_activate(generator, standardise(state @ weights)))
        state = standardise(state + noise * normal(generator, (tasks, rows, width)))
        # Every layer's nodes can become features or hidden causes.
        nodes.append(state)
    everything = torch.cat(nodes, -1)  # (B, N, width * (layers + 1))
    # Deep nodes are as likely as shallow ones, so outcomes have both causes and effects among the features.
    order = torch.rand(tasks, everything.shape[-1], generator=generator, device=roots.device).argsort(1)
    # `features` nodes are seen; four more stay hidden, for labels that read causes or effects of what is seen.
    picked = order[:, : features + 4]
    chosen = everything.gather(2, picked[:, None, :].expand(-1, rows, -1))
    return Latent(chosen[..., :features], score=chosen[..., features:])


def rugged(generator: torch.Generator, tasks: int, rows: int, features: int) -> Latent:
    """A random network as `graph`, less tame: heavy tails, causes of several laws, steps, waves, bumps and products."""
    width = max(6, min(2 * features, 48))
    shape, each = (tasks, rows, width), (tasks, 1, width)
    state = _root(generator, shape)
    nodes = [state]
    noise = log_uniform(generator, (tasks, 1, 1), 0.02, 1.0)
    for _ in range(int(integers(generator, (1,), 2, 4))):
        sparsity = uniform(generator, (tasks, 1, 1), 1.5, 5.0) / width
        # A cube makes one parent dwarf the others now and then.
        size = normal(generator, (tasks, width, width)) ** 3
        parents = standardise(state @ (size * coin(generator, (tasks, width, width), sparsity)))
        # Some nodes are the product of two causes.
        other = state.gather(2, integers(generator, each, 0, width - 1).expand(shape))
        parents = torch.where(coin(generator, each, 0.1), standardise(parents * other), parents)
        state = standardise(_bend(generator, parents), limit=8.0)
        heavy = normal(generator, shape) / uniform(generator, shape, 0.1, 1.0)
        error = torch.where(coin(generator, each, 0.2), heavy, normal(generator, shape))
        state = standardise(state + noise * error, limit=8.0)
        nodes.append(state)
    everything = torch.cat(nodes, -1)
    order = torch.rand(tasks, everything.shape[-1], generator=generator, device=state.device).argsort(1)
    # Four more nodes than are seen, as in `graph`: a label may read what is hidden.
    chosen = everything.gather(2, order[:, None, : features + 4].expand(-1, rows, -1))
    return Latent(chosen[..., :features], score=chosen[..., features:])


def _root(generator: torch.Generator, shape: tuple[int, int, int]) -> Tensor:
    """(B, N, width) causes that have none: normal, uniform, skewed, heavy-tailed, or one of two values."""
    each = (shape[0], 1, shape[2])
    z = normal(generator, shape)
    pick = integers(generator, each, 0, 5)
    laws = (
        z,
        uniform(generator, shape, -1.0, 1.0),
        z.clamp_max(3.0).exp(),
        z / uniform(generator, shape, 0.1, 1.0),
        (z > normal(generator, each)).to(z.dtype),
    )
    root = z
    for index, law in enumerate(laws):
        root = torch.where(pick == index, law, root)
    return standardise(root, limit=8.0)


def _bend(generator: torch.Generator, values: Tensor) -> Tensor:
    """A random function per node: (B, N, width) in and out."""
    each = (values.shape[0], 1, values.shape[2])
    cut, rate = normal(generator, each), log_uniform(generator, each, 0.5, 4.0)
    pick = integers(generator, each, 0, 9)  # 9 is none of the functions below: the node stays linear
    bent = (
        torch.tanh(rate * values - cut),
        (values > cut).to(values.dtype),
        (values - cut).clamp_min(0),
        (values - cut).abs(),
        torch.sin(rate * values + cut),
        (-rate * (values - cut).square()).exp(),
        (rate * values).round() / rate,
        values.sign() * values.abs().sqrt(),
        torch.special.ndtr(rate * (values - cut)),
    )
    out = values
    for index, candidate in enumerate(bent):
        out = torch.where(pick == index, candidate, out)
    return out


def clusters(generator: torch.Generator, tasks: int, rows: int, features: int) -> Latent:
    """A mixture of 2 to 10 groups of patients that differ in some features by some amount."""
    count = 10
    used = integers(generator, (tasks,), 2, count)
    weights = log_uniform(generator, (tasks, count), 0.1, 1.0)
    # Groups beyond a task's own number get no members.
    weights = weights.masked_fill(torch.arange(count, device=weights.device) >= used[:, None], 0.0)
    member = torch.multinomial(weights, rows, replacement=True, generator=generator)  # (B, N)
    differs = coin(generator, (tasks, 1, features), uniform(generator, (tasks, 1, 1), 0.1, 1.0))
    spread = log_uniform(generator, (tasks, 1, 1), 0.3, 4.0)
    # Groups differ in the features of `differs` only, by `spread` standard deviations.
    centres = normal(generator, (tasks, count, features)) * differs * spread
    own = gaussian(generator, tasks, rows, features).z
    z = centres.gather(1, member[..., None].expand(-1, -1, features)) + own
    mean, std = z.mean(1, keepdim=True), z.std(1, keepdim=True).clamp_min(1e-6)
    return Latent((z - mean) / std, centres=((centres - mean) / std)[:, :count])


def add_copies_and_noise(generator: torch.Generator, z: Tensor) -> Tensor:
    """Some features become noisy copies of others (redundant tests), some pure noise (useless tests)."""
    tasks, rows, features = z.shape
    source = integers(generator, (tasks, features), 0, features - 1)
    copied = z.gather(2, source[:, None, :].expand(-1, rows, -1))
    likeness = uniform(generator, (tasks, 1, features), 0.6, 1.0)
    fresh = normal(generator, (tasks, rows, features))
    # Correlation `likeness` with the source, and still unit variance.
    copied = likeness * copied + (1 - likeness.square()).clamp_min(0).sqrt() * fresh
    # The square makes few copies common and many rare.
    is_copy = coin(generator, (tasks, 1, features), 0.5 * uniform(generator, (tasks, 1, 1)).square())
    is_noise = coin(generator, (tasks, 1, features), 0.5 * uniform(generator, (tasks, 1, 1)).square())
    z = torch.where(is_copy, copied, z)
    return torch.where(is_noise & ~is_copy, normal(generator, (tasks, rows, features)), z)


def _activate(generator: torch.Generator, values: Tensor) -> Tensor:
    """A random function per node: (B, N, width) in and out."""
    tasks, _, width = values.shape
    # 5 is none of the functions below: the node stays linear.
    pick = integers(generator, (tasks, 1, width), 0, 5)
    out = values
    functions = (torch.tanh, torch.relu, torch.abs, lambda v: v.square().clamp_max(6.0), lambda v: (v > 0).to(v.dtype))
    for index, function in enumerate(functions):
        out = torch.where(pick == index, function(values), out)
    return out


KINDS = (gaussian, graph, clusters, rugged)

"""Label mechanisms of the synthetic prior: z (B, N, d) and importances (B, d) → scores (B, N, K).

Importances are zero for features that the mechanism does not read. Scores are later standardised, sharpened by a
temperature and turned into outcomes, so only their shape matters here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from l2m_core.tasks.draws import coin, columns_at, integers, log_uniform, normal, standardise, uniform


def linear(generator: torch.Generator, z: Tensor, importance: Tensor, classes: int) -> Tensor:
    # Coefficients of random sign and of sizes from half to one and a half: importance decides, not one lucky draw.
    sign = torch.where(coin(generator, (*importance.shape, classes), 0.5), 1.0, -1.0)
    size = uniform(generator, (*importance.shape, classes), 0.5, 1.5)
    return z @ (importance[..., None] * sign * size)


def interactions(generator: torch.Generator, z: Tensor, importance: Tensor, classes: int) -> Tensor:
    """Linear, plus pairs that act only together: w x_i x_j where x_i x_j exceeds a threshold."""
    weight = importance.sqrt()
    tasks, features = importance.shape
    first = torch.multinomial(weight + 1e-9, 4, replacement=True, generator=generator)
    second = torch.multinomial(weight + 1e-9, 4, replacement=True, generator=generator)
    # Four pairs, drawn by the square roots of the importances, so that weak features pair up too.
    product = columns_at(z, first) * columns_at(z, second)  # (B, N, 4)
    active = torch.where(product > uniform(generator, (tasks, 1, 1), 0.0, 1.0), product.clamp_max(4.0), 0.0)
    share = uniform(generator, (tasks, 1, 1), 0.3, 3.0)
    return linear(generator, z, importance, classes) + share * active @ normal(generator, (tasks, 4, classes))


def network(generator: torch.Generator, z: Tensor, importance: Tensor, classes: int) -> Tensor:
    """A two-layer tanh network of random smoothness."""
    tasks, features = importance.shape
    hidden = 8
    scale = log_uniform(generator, (tasks, 1, 1), 0.5, 3.0)
    inner = normal(generator, (tasks, features, hidden)) * importance[..., None]
    # Unit variance into tanh whatever the number of inputs, then `scale`: near linear to near steps.
    inner = scale * inner / inner.square().sum(1, keepdim=True).sqrt().clamp_min(1e-6)
    shift = normal(generator, (tasks, 1, hidden))
    # Hidden units of unequal weight: some tasks depend on few of them.
    outer = normal(generator, (tasks, hidden, classes)) * log_uniform(generator, (tasks, hidden, 1), 0.1, 1.0)
    return torch.tanh(z @ inner + shift) @ outer


def trees(generator: torch.Generator, z: Tensor, importance: Tensor, classes: int) -> Tensor:
    """A sum of random oblivious trees: every level of a tree asks one question of one feature."""
    tasks = z.shape[0]
    score: Tensor | float = 0.0
    count = int(integers(generator, (1,), 1, 6))
    for _ in range(count):
        depth = int(integers(generator, (1,), 1, 4))
        # Each level asks a feature drawn by importance; 1e-9 keeps the draw valid where all are 0.
        asked = torch.multinomial(importance + 1e-9, depth, replacement=True, generator=generator)
        answers = columns_at(z, asked) > 0.8 * normal(generator, (tasks, 1, depth))
        # The answers as bits of the leaf's number: 2^depth leaves, one gather, no loop over nodes.
        leaf = (answers.long() << torch.arange(depth, device=z.device)).sum(-1)  # (B, N)
        values = normal(generator, (tasks, 2**depth, classes))
        score = score + values.gather(1, leaf[..., None].expand(-1, -1, classes))
    return score  # type: ignore[return-value]


def rules(generator: torch.Generator, z: Tensor, importance: Tensor, classes: int) -> Tensor:
    """Any one abnormal finding raises the score (noisy or), as when a disease shows in several ways."""
    tasks, features = importance.shape
    weight = (importance / importance.amax(1, keepdim=True).clamp_min(1e-6))[:, None, :, None]
    sign = torch.where(coin(generator, (tasks, 1, features, classes), 0.5), 1.0, -1.0)
    cut = uniform(generator, (tasks, 1, features, classes), 0.0, 1.5)
    # How far beyond its cut a finding lies, on its abnormal side; the sigmoid makes it a soft yes or no.
    excess = (sign * z[..., None] - cut) * log_uniform(generator, (tasks, 1, 1, 1), 1.0, 8.0)
    # The strongest finding decides, the others add nothing: noisy or.
    return (weight * torch.sigmoid(excess)).amax(2)


def waves(generator: torch.Generator, z: Tensor, importance: Tensor, classes: int) -> Tensor:
    """A smooth random function (random Fourier features of an RBF kernel with a length-scale per feature)."""
    tasks, features = importance.shape
    terms = 48
    # Frequencies drawn from a normal of this rate: features of little importance vary slowly, which is a long length-
    # scale.
    rate = importance / importance.amax(1, keepdim=True).clamp_min(1e-6) * log_uniform(generator, (tasks, 1), 0.3, 1.5)
    frequency = normal(generator, (tasks, features, terms)) * rate[..., None]
    phase = uniform(generator, (tasks, 1, terms), 0.0, 2 * math.pi)
    return torch.cos(z @ frequency + phase) @ normal(generator, (tasks, terms, classes))


def centres(generator: torch.Generator, z: Tensor, importance: Tensor, classes: int) -> Tensor:
    """The nearer to a class's centre, the likelier the class."""
    tasks, features = importance.shape
    weight = importance / importance.amax(1, keepdim=True).clamp_min(1e-6)
    middle = normal(generator, (tasks, classes, features)) * log_uniform(generator, (tasks, 1, 1), 0.3, 2.0)
    scaled = z * weight[:, None]
    middle = middle * weight[:, None]
    # -|z - m|² / 2 up to a term that all classes share
    return scaled @ middle.transpose(1, 2) - 0.5 * middle.square().sum(-1)[:, None]


def points(generator: torch.Generator, z: Tensor, importance: Tensor, classes: int) -> Tensor:
    """Each feature counts by a curve of its own, as in clinical scores: a step, two steps, a hinge, both extremes, a plateau."""
    tasks, features = importance.shape
    shape = (tasks, 1, features)
    cut, second = 0.9 * normal(generator, shape), 0.9 * normal(generator, shape)
    kind = integers(generator, shape, 0, 4)
    beyond = z - cut
    candidates = (
        (beyond > 0).to(z.dtype),
        (beyond > 0).to(z.dtype) + (z > second),
        beyond.clamp_min(0),
        beyond.abs(),
        torch.tanh(2 * beyond),
    )
    curve = candidates[0]
    for index, candidate in enumerate(candidates):
        curve = torch.where(kind == index, candidate, curve)
    # Of unit variance each, so that importances alone say what counts for how much.
    return linear(generator, standardise(curve, limit=6.0), importance, classes)


def forest(generator: torch.Generator, z: Tensor, importance: Tensor, classes: int) -> Tensor:
    """A sum of many random trees whose every node asks a question of its own, later trees counting less."""
    tasks, rows, _ = z.shape
    count, depth = int(integers(generator, (1,), 4, 16)), int(integers(generator, (1,), 2, 6))
    nodes = 2**depth
    # Node k of a tree has the children 2k and 2k + 1, the root is 1: (B, trees · nodes) features and cuts.
    asked = torch.multinomial(importance + 1e-9, count * nodes, replacement=True, generator=generator)
    cut = 0.9 * normal(generator, (tasks, count * nodes))
    tree = nodes * torch.arange(count, device=z.device)  # where each tree's nodes begin
    at = torch.ones(tasks, rows, count, dtype=torch.int64, device=z.device)
    for _ in range(depth):
        node = (tree + at).flatten(1)  # (B, N · trees)
        value = z.gather(2, asked.gather(1, node).view(at.shape))
        at = 2 * at + (value > cut.gather(1, node).view(at.shape))
    leaf = (tree + at - nodes).flatten(1)
    size = uniform(generator, (tasks, 1, 1), 0.7, 1.0) ** torch.arange(count, device=z.device)[:, None]  # (B, trees, 1)
    leaves = normal(generator, (tasks, count * nodes, classes)).view(tasks, count, nodes, classes) * size[..., None]
    read = leaves.flatten(1, 2).gather(1, leaf[..., None].expand(-1, -1, classes))
    return read.view(tasks, rows, count, classes).sum(2)


HIDDEN = None  # no function of the features: their hidden causes and effects, see synthetic.py
MECHANISMS = (linear, interactions, network, trees, rules, waves, centres, HIDDEN, points, forest)

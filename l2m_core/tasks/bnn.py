"""The bnn and bnn_plan priors: rows fall into clusters, and each cluster has a random network on its own features.

Where the study leaves a detail open: covariates are independent standard normals, so are the cluster centres; each
cluster reads 2 to 6 features; a score has unit variance over a task before the temperature divides it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.checks import check_choice, check_number, check_range
from l2m_core.tasks.draws import integers, log_uniform, normal, standardise, uniform
from l2m_core.tasks.missingness import Missingness
from l2m_core.tasks.outcomes import draw_classes, draw_continuous
from l2m_core.tasks.recorded import as_recorded
from l2m_core.tasks.roles import sample_informative


@dataclass(frozen=True)
class BNNConfig:
    """Ranges of the bnn prior."""

    outcome: str = "classes"
    """"classes" or "continuous"."""
    classes: tuple[int, int] = (2, 2)
    """Range of the number of classes; (2, 2) makes every task binary."""
    prevalence: tuple[float, float] = (0.05, 0.95)
    """Range of the prevalence of a binary outcome, uniform."""
    class_bias: float = 0.5
    """Standard deviation of the classes' biases in a multi-class task."""
    temperature: tuple[float, float] = (0.1, 1.0)
    """Range of the temperature, log-uniform: scores of unit variance are divided by it, so low means predictable."""
    noise: tuple[float, float] = (0.05, 1.0)
    """Range of the noise of a continuous outcome, log-uniform, against a score of unit variance."""
    clusters: tuple[int, int] = (1, 3)
    """Range of the number of clusters."""
    centre_scale: float = 1.0
    """Standard deviation of the cluster centres' coordinates."""
    informative: tuple[int, int] = (2, 6)
    """Range of the number of features that a cluster reads, at most all of them."""
    hidden: int = 8
    """Width of the hidden layer."""
    importance: tuple[float, float] = (0.2, 1.0)
    """Range of the weight of an informative feature against the others, log-uniform."""
    scale: tuple[float, float] = (0.5, 3.0)
    """Range of the standard deviation of the hidden layer's inputs, log-uniform: near linear to near steps."""
    baseline: tuple[int, int] = (0, 3)
    """Range of the number of baseline features; at least one feature stays acquirable."""
    missingness: Missingness = field(default_factory=Missingness)
    """How values come to be missing."""

    def __post_init__(self) -> None:
        check_choice(self, "outcome", ("classes", "continuous"))
        check_range(self, "classes", 2, 1000)
        check_range(self, "prevalence", 1e-4, 1 - 1e-4)
        check_number(self, "class_bias", 0.0, 100.0)
        for name in ("temperature", "noise", "importance", "scale"):
            check_range(self, name, 1e-4, 1e4)
        check_range(self, "clusters", 1, 100)
        check_number(self, "centre_scale", 0.0, 100.0)
        check_range(self, "informative", 1, 1_000_000)
        check_number(self, "hidden", 1, 4096)
        check_range(self, "baseline", 0, 1_000_000)


@dataclass(frozen=True)
class BNNPlanConfig(BNNConfig):
    """Ranges of the bnn_plan prior: the bnn prior's, and pairs of features that are informative only jointly."""

    interactions: tuple[int, int] = (1, 3)
    """Range of the number of interacting pairs in a cluster; both features of a pair are informative ones."""
    threshold: tuple[float, float] = (0.0, 1.0)
    """Range of τ: a pair adds w · x_i · x_j to the score where x_i · x_j > τ, else nothing."""
    interaction_share: tuple[float, float] = (0.5, 2.0)
    """Range of the interactions' standard deviation against the network's, log-uniform."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_interactions(self)


def check_interactions(config: Any) -> None:
    """Settings of pairs of features that are informative only jointly."""
    check_range(config, "interactions", 1, 1000)
    check_range(config, "informative", 2, 1_000_000)
    check_range(config, "threshold", -100.0, 100.0)
    check_range(config, "interaction_share", 1e-4, 1e4)


class BNNPrior:
    """bnn with a BNNConfig, bnn_plan with a BNNPlanConfig."""

    def __init__(self, config: BNNConfig | None = None):
        self.config = config or BNNConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        config = self.config
        x = normal(generator, (tasks, rows, features))
        y, n_classes, truth = label(generator, x, config)
        return as_recorded(generator, config, x, y, n_classes, truth)


class BNNPlanPrior(BNNPrior):
    def __init__(self, config: BNNPlanConfig | None = None):
        super().__init__(config or BNNPlanConfig())


def label(generator: torch.Generator, z: Tensor, config: BNNConfig) -> tuple[Tensor, Tensor | None, Truth]:
    """z: (B, N, d) standardised covariates → y: (B, N), n_classes: (B,) or None, and the truth."""
    B, N, d = z.shape
    clusters = integers(generator, (B,), *config.clusters)
    cluster = nearest_centre(generator, z, clusters, config.clusters[1], config.centre_scale)
    informative = sample_informative(generator, (B, config.clusters[1]), d, config.informative)
    score = _score(generator, z, cluster, informative, config)
    # (B, N, d): which features tell depends on the row, through its cluster.
    truth = Truth(informative=of_cluster(informative, cluster))
    if config.outcome == "continuous":
        std = log_uniform(generator, (B, 1), *config.noise).expand(B, N)
        y, drawn = draw_continuous(generator, score.squeeze(2), std)
        return y, None, replace(truth, mean=drawn.mean, std=drawn.std)
    n_classes = integers(generator, (B,), *config.classes)
    # Temperature before the biases, so that a sharp task is not also a lopsided one.
    logits = score / log_uniform(generator, (B, 1, 1), *config.temperature)
    logits = logits + config.class_bias * normal(generator, (B, 1, logits.shape[2]))
    y, probabilities = draw_classes(generator, logits, n_classes, uniform(generator, (B,), *config.prevalence))
    return y, n_classes, replace(truth, probabilities=probabilities)


def nearest_centre(generator: torch.Generator, z: Tensor, clusters: Tensor, most: int, scale: float) -> Tensor:
    """(B, N) int64: the nearest of the task's centres; clusters: (B,) says how many of `most` it has."""
    B, _, d = z.shape
    centres = scale * normal(generator, (B, most, d))
    # Tasks with fewer clusters than the most: their missing centres are infinitely far.
    absent = torch.arange(most, device=z.device) >= clusters.unsqueeze(1)
    return torch.cdist(z, centres).masked_fill(absent.unsqueeze(1), float("inf")).argmin(dim=2)


def _score(generator: torch.Generator, z: Tensor, cluster: Tensor, informative: Tensor, config: BNNConfig) -> Tensor:
    """(B, N, K) scores of unit variance; one column when continuous. informative: (B, C, d)."""
    columns = 1 if config.outcome == "continuous" else config.classes[1]
    score = standardise(_network(generator, z, cluster, informative, columns, config))
    if isinstance(config, BNNPlanConfig):
        # x · x' alone tells nothing of one feature by itself: a greedy policy sees no gain in the first of a pair,
        # which is what the study's BNN-Plan tests.
        pairs = interactions(
            generator, z, cluster, informative, columns, count=config.interactions, threshold=config.threshold
        )
        together = standardise(pairs)
        score = standardise(score + together * log_uniform(generator, (len(z), 1, 1), *config.interaction_share))
    if columns == 2:
        # The outcome reads the difference of two scores: this gives the difference itself unit variance.
        score = torch.stack((torch.zeros_like(score[..., 0]), score[..., 1]), dim=2)
    return score


def _network(
    generator: torch.Generator, z: Tensor, cluster: Tensor, informative: Tensor, columns: int, config: BNNConfig
) -> Tensor:
    """tanh(z W + b) V with weights of the row's own cluster: (B, N, columns)."""
    B, N, d = z.shape
    C, H = informative.shape[1], config.hidden
    # Features that the cluster does not read have an importance of 0.
    importance = log_uniform(generator, (B, C, d, 1), *config.importance) * informative.unsqueeze(3)
    inner = normal(generator, (B, C, d, H)) * importance
    # Each hidden unit's input has unit variance for standard normal covariates, however many features the cluster
    # reads; then `scale` decides how far into tanh's bend it goes.
    inner = inner / inner.square().sum(dim=2, keepdim=True).sqrt().clamp_min(1e-6)
    inner = inner * log_uniform(generator, (B, C, 1, 1), *config.scale)
    outer = normal(generator, (B, C, H, columns))
    # (B, N, C, H), of which each row keeps its own cluster's: one product for all clusters, no loop.
    every = torch.einsum("bnd,bcdh->bnch", z, inner) + normal(generator, (B, 1, C, H))
    own = every.gather(2, cluster[:, :, None, None].expand(B, N, 1, H)).squeeze(2)
    # One-hot clusters pick each row's own output weights inside the product below.
    member = torch.nn.functional.one_hot(cluster, C).to(z.dtype)
    return torch.einsum("bnh,bnc,bchk->bnk", torch.tanh(own), member, outer)


def interactions(
    generator: torch.Generator,
    z: Tensor,
    cluster: Tensor,
    informative: Tensor,
    columns: int,
    *,
    count: tuple[int, int],
    threshold: tuple[float, float],
) -> Tensor:
    """Sum over the cluster's pairs of w · z_i · z_j where z_i · z_j > τ: (B, N, columns).

    informative: (B, C, d); count, threshold: ranges of the number of pairs and of τ.
    """
    B, N, d = z.shape
    C, most = informative.shape[1], count[1]
    # Up to `most` pairs are drawn for every cluster; those beyond its own count get a weight of 0 below.
    used = integers(generator, (B, C, 1), *count)
    # Two of a cluster's informative features at random: the smallest keys, others' being at least 1.
    key = uniform(generator, (B, C, most, d)) + (~informative).unsqueeze(2)
    # With a single feature the pair is that feature with itself.
    pair = key.topk(min(2, d), dim=3, largest=False).indices  # (B, C, most, 2)
    weight = normal(generator, (B, C, most, columns))
    weight = weight * (torch.arange(most, device=z.device) < used).unsqueeze(3)
    least = uniform(generator, (B, 1, 1), *threshold)
    own = cluster[:, :, None].expand(B, N, most)
    first, second = (pair[..., end].gather(1, own) for end in (0, -1))  # (B, N, most)
    product = z.gather(2, first) * z.gather(2, second)
    # The study's w · x_i · x_j · 1[x_i · x_j > τ]
    active = torch.where(product > least, product, torch.zeros_like(product))
    return torch.einsum("bnm,bnmk->bnk", active, of_cluster(weight.flatten(2), cluster).view(B, N, most, columns))


def of_cluster(values: Tensor, cluster: Tensor) -> Tensor:
    """values: (B, C, m), cluster: (B, N) → (B, N, m): each row's cluster's values."""
    B, N = cluster.shape
    return values.gather(1, cluster.unsqueeze(2).expand(B, N, values.shape[2]))

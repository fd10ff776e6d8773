"""The findings prior: the outcome comes first, as a disease does, and every value follows from it.

Where the synthetic prior asks "which outcome do these values lead to?", here each class raises some findings and lowers
others, whatever the number of features: wide tables with many classes may tell nearly everything, as charts at times do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from l2m_core.errors import ConfigError
from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.checks import check_number
from l2m_core.tasks.draws import categorical, coin, integers, log_uniform, normal, standardise, uniform
from l2m_core.tasks.marginals import observe_like_a_chart
from l2m_core.tasks.missingness import Missingness, sample_missingness
from l2m_core.tasks.roles import sample_acquirable

FACTORS = 3


@dataclass(frozen=True)
class ClassCounts:
    """How many classes tasks have."""

    max_classes: int = 10
    """Most classes of a task; 2 makes every task binary."""
    binary_share: float = 0.35
    """Share of binary tasks."""

    def __post_init__(self) -> None:
        check_number(self, "binary_share", 0.0, 1.0)
        if self.max_classes < 2:
            raise ConfigError(f"{type(self).__name__}.max_classes is {self.max_classes}; give 2 or more.")

    def draw(self, generator: torch.Generator, tasks: int) -> tuple[Tensor, Tensor]:
        """n_classes: (B,); exists: (B, K) bool, True for the classes that a task has, K those of the task of most."""
        several = log_uniform(generator, (tasks,), 3.0, max(3, self.max_classes) + 0.999).long()
        is_binary = coin(generator, (tasks,), self.binary_share) | (self.max_classes == 2)
        n_classes = torch.where(is_binary, 2, several)
        return n_classes, torch.arange(int(n_classes.max()), device=generator.device) < n_classes[:, None]


@dataclass(frozen=True)
class ClassShares(ClassCounts):
    """How many classes tasks have, and how common each is."""

    least_prevalence: tuple[float, float] = (0.02, 0.3)
    """Range of the weight of the rarest classes against the commonest, log-uniform."""


@dataclass(frozen=True)
class FindingsConfig(ClassShares):
    """Ranges of the findings prior."""

    size: tuple[float, float] = (0.3, 3.0)
    """Range of how far a class moves a finding, log-uniform for each task; within a class findings have unit variance."""
    raised: tuple[float, float] = (0.1, 0.8)
    """Range of the share of its informative findings that a class moves, log-uniform."""
    informative: tuple[float, float] = (0.15, 1.0)
    """Range of the share of findings that tell about the outcome at all."""
    healthy_share: float = 0.4
    """Share of tasks in which one class moves nothing."""
    missingness: Missingness = field(default_factory=Missingness)
    """How values come to be missing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "healthy_share", 0.0, 1.0)


class FindingsPrior:
    """`sample` draws B tasks of one shape in batched tensor code, on the generator's device."""

    def __init__(self, config: FindingsConfig | None = None):
        self.config = config or FindingsConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        config = self.config
        n_classes, prevalence = draw_classes(generator, config, tasks)
        centres = draw_centres(generator, config, prevalence, features)  # (B, K, d)
        loadings, own = _draw_common_noise(generator, tasks, features)
        y = categorical(generator, prevalence[:, None].expand(-1, rows, -1))  # (B, N)
        # Findings of one class still go together, through a few shared factors (Σ = ΛᵀΛ + diag).
        noise = normal(generator, (tasks, rows, FACTORS)) @ loadings + own * normal(generator, (tasks, rows, features))
        z = centres.gather(1, y[..., None].expand(-1, -1, features)) + noise
        x, is_code = observe_like_a_chart(generator, standardise(z))
        acquirable = sample_acquirable(generator, tasks, features, (0, max(0, features // 2)))
        r = sample_missingness(generator, x, acquirable, config.missingness)
        truth = Truth(
            probabilities=_posterior(z, centres, loadings, own, prevalence),
            informative=_differ(centres, prevalence)[:, None].expand(-1, rows, -1),
        )
        return TaskBatch(x, r, y, n_classes, acquirable, is_code, truth)


def draw_classes(generator: torch.Generator, config: ClassShares, tasks: int) -> tuple[Tensor, Tensor]:
    """n_classes: (B,) and prevalence: (B, K), 0 where a task has no such class."""
    n_classes, exists = config.draw(generator, tasks)
    rarest = log_uniform(generator, (tasks, 1), *config.least_prevalence)
    # Prevalences log-uniform between the rarest and 1, then normalised: a few common classes, a tail of rare ones.
    weight = rarest ** uniform(generator, tuple(exists.shape)) * exists
    return n_classes, weight / weight.sum(1, keepdim=True)


def share_out(generator: torch.Generator, forms: int, prevalence: Tensor) -> Tensor:
    """(B, forms · K) how common each form of each class is; many classes have one form only. Form h is of class h mod K."""
    tasks, classes = prevalence.shape
    part = uniform(generator, (tasks, forms, classes), 0.2, 1.0)
    count = torch.where(
        coin(generator, (tasks, 1, classes), 0.5), 1, integers(generator, (tasks, 1, classes), 1, forms)
    )
    part = part * (torch.arange(forms, device=generator.device)[:, None] < count)
    return (part / part.sum(1, keepdim=True) * prevalence[:, None]).flatten(1)


def draw_centres(generator: torch.Generator, config: FindingsConfig, prevalence: Tensor, features: int) -> Tensor:
    """(B, K, d): where each class has the middle of each finding."""
    tasks, classes = prevalence.shape
    shape = (tasks, classes, features)
    tells = coin(generator, (tasks, 1, features), uniform(generator, (tasks, 1, 1), *config.informative))
    # A class moves only some of the findings that tell at all, as a disease shows in some of its signs.
    moves = coin(generator, shape, log_uniform(generator, (tasks, 1, 1), *config.raised))
    # A finding mostly goes one way, whichever class moves it.
    way = torch.where(coin(generator, shape, 0.85), 1.0, -1.0)
    way = way * torch.where(coin(generator, (tasks, 1, features), 0.5), 1.0, -1.0)
    size = log_uniform(generator, (tasks, 1, 1), *config.size) * uniform(generator, shape, 0.3, 1.5)
    is_healthy = coin(generator, (tasks, 1, 1), config.healthy_share)
    first = torch.arange(classes, device=generator.device)[:, None] == integers(
        generator, (tasks, 1, 1), 0, classes - 1
    )
    return torch.where(tells & moves & ~(is_healthy & first), way * size, 0.0)


def _draw_common_noise(generator: torch.Generator, tasks: int, features: int) -> tuple[Tensor, Tensor]:
    """loadings: (B, F, d) of what findings share within a class, own: (B, 1, d) standard deviation of the rest."""
    loadings = normal(generator, (tasks, FACTORS, features))
    used = torch.arange(FACTORS, device=generator.device) < integers(generator, (tasks, 1), 0, FACTORS)
    loadings = loadings * used[..., None]
    share = uniform(generator, (tasks, 1, 1)) * uniform(generator, (tasks, 1, features))
    length = loadings.square().sum(1, keepdim=True).sqrt()
    loadings = share.sqrt() * loadings / length.clamp_min(1e-6)
    return loadings, (1 - loadings.square().sum(1, keepdim=True)).clamp_min(0.05).sqrt()


def _posterior(z: Tensor, centres: Tensor, loadings: Tensor, own: Tensor, prevalence: Tensor) -> Tensor:
    """(B, N, K) p(y | z) of normal classes that share one covariance."""
    covariance = loadings.transpose(1, 2) @ loadings + torch.diag_embed(own[:, 0].square())  # (B, d, d)
    # Whitened by Σ = L Lᵀ, the classes are round and the posterior is a softmax of distances to their middles.
    root = torch.linalg.cholesky(covariance)
    values = torch.linalg.solve_triangular(root, z.transpose(1, 2), upper=False)  # (B, d, N)
    middles = torch.linalg.solve_triangular(root, centres.transpose(1, 2), upper=False)  # (B, d, K)
    # -|v - m|² / 2 up to a term that all classes share
    logits = values.transpose(1, 2) @ middles - 0.5 * middles.square().sum(1)[:, None]
    return (logits + prevalence.log()[:, None]).softmax(-1)


def _differ(centres: Tensor, prevalence: Tensor) -> Tensor:
    """(B, d): findings whose middle differs between the classes that a task has."""
    exists = (prevalence > 0)[..., None]
    low = centres.masked_fill(~exists, float("inf")).amin(1)
    high = centres.masked_fill(~exists, float("-inf")).amax(1)
    return high > low

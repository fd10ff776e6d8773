"""The patterns prior: classes differ in how measurements go together, not only in how high they are.

The findings prior moves middles alone: its best boundary is a plane. Here each class is one or several groups of patients, and
each group has middles, spreads and correlations of its own, so that a value may speak for a class beside one value and against it
beside another. What finds it out is a discriminant analysis with quadratic boundaries, or a kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.checks import check_number
from l2m_core.tasks.draws import categorical, coin, integers, log_uniform, normal, standardise, uniform
from l2m_core.tasks.findings import ClassShares, draw_classes, share_out
from l2m_core.tasks.marginals import observe_like_a_chart
from l2m_core.tasks.missingness import Missingness, sample_missingness
from l2m_core.tasks.roles import sample_acquirable

FACTORS = 4
LEAST_OWN = 0.05  # of a measurement's variance: what no factor explains


@dataclass(frozen=True)
class PatternsConfig(ClassShares):
    """Ranges of the patterns prior."""

    groups: int = 4
    """Most groups of a class."""
    apart: tuple[float, float] = (0.1, 2.5)
    """Range of how far apart the middles of groups lie, log-uniform for each task; within a group variances are about 1."""
    wider: tuple[float, float] = (1.0, 2.5)
    """Range of the factor, log-uniform for each task, by which spreads of groups differ at most, up or down."""
    own_correlation: float = 0.7
    """Share of tasks in which each group has correlations of its own; in the others all share theirs."""
    informative: tuple[float, float] = (0.15, 1.0)
    """Range of the share of measurements that tell about the outcome at all."""
    missingness: Missingness = field(default_factory=Missingness)
    """How values come to be missing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "groups", 1, 8)
        check_number(self, "own_correlation", 0.0, 1.0)


@dataclass(frozen=True)
class Groups:
    """H normal groups: middle: (B, H, d); loadings: (B, H, F, d) of factors; own: (B, H, d) standard deviation of the rest."""

    middle: Tensor
    loadings: Tensor
    own: Tensor


class PatternsPrior:
    """`sample` draws B tasks of one shape in batched tensor code, on the generator's device."""

    def __init__(self, config: PatternsConfig | None = None):
        self.config = config or PatternsConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        config = self.config
        n_classes, prevalence = draw_classes(generator, config, tasks)
        weight = share_out(generator, config.groups, prevalence)  # (B, H): group h is of class h mod K
        tells = coin(generator, (tasks, 1, features), uniform(generator, (tasks, 1, 1), *config.informative))
        groups = _draw_groups(generator, config, tells, weight.shape[1])
        group = categorical(generator, weight[:, None].expand(-1, rows, -1))  # (B, N)
        z = _draw_rows(generator, groups, group)
        x, is_code = observe_like_a_chart(generator, standardise(z))
        acquirable = sample_acquirable(generator, tasks, features, (0, max(0, features // 2)))
        r = sample_missingness(generator, x, acquirable, config.missingness)
        classes = prevalence.shape[1]
        logits = (_log_likelihood(groups, z) + weight.log()[:, None]).unflatten(2, (-1, classes)).logsumexp(2)
        truth = Truth(probabilities=logits.softmax(-1), informative=tells.expand(-1, rows, -1))
        return TaskBatch(x, r, group % classes, n_classes, acquirable, is_code, truth)


def _draw_groups(generator: torch.Generator, config: PatternsConfig, tells: Tensor, groups: int) -> Groups:
    """tells: (B, 1, d); of all other measurements every group has the same middle, spread and correlations."""
    tasks, _, features = tells.shape
    shape = (tasks, groups, features)
    apart = log_uniform(generator, (tasks, 1, 1), *config.apart)
    middle = torch.where(tells, apart * normal(generator, shape), 0.0)
    # Up to `wider` times as wide, or as narrow: a power of it between -1 and 1.
    wider = log_uniform(generator, (tasks, 1, 1), *config.wider)
    spread = torch.where(tells, wider ** uniform(generator, shape, -1.0, 1.0), 1.0)
    loadings = _draw_loadings(generator, tasks, groups, features)
    is_own = coin(generator, (tasks, 1, 1, 1), config.own_correlation)
    loadings = torch.where(is_own, loadings, loadings[:, :1])
    # Factors of measurements that tell, and of those that do not, are apart: else these would tell beside those.
    share = uniform(generator, (tasks, 1, 1)).sqrt() * uniform(generator, (tasks, 1, features), 0.3, 1.0)
    common = torch.where(tells[:, :, None], 0.0, loadings[:, :1]).expand_as(loadings)
    loadings = torch.cat([torch.where(tells[:, :, None], loadings, 0.0), common], dim=2)  # (B, H, 2F, d)
    size = loadings.square().sum(2, keepdim=True).sqrt().clamp_min(1e-6)
    loadings = share.sqrt()[:, :, None] * loadings / size
    own = (1 - loadings.square().sum(2)).clamp_min(LEAST_OWN).sqrt()
    return Groups(middle, loadings * spread[:, :, None], own * spread)


def _draw_loadings(generator: torch.Generator, tasks: int, groups: int, features: int) -> Tensor:
    """(B, H, F, d), of which a task uses one factor to all."""
    loadings = normal(generator, (tasks, groups, FACTORS, features))
    # Most measurements load on some of the factors only.
    loadings = loadings * (0.05 + coin(generator, (tasks, groups, FACTORS, features), 0.6))
    used = torch.arange(FACTORS, device=generator.device) < integers(generator, (tasks, 1), 1, FACTORS)
    return loadings * used[:, None, :, None]


def _draw_rows(generator: torch.Generator, groups: Groups, group: Tensor) -> Tensor:
    """(B, N, d) measurements of rows of these groups (B, N)."""
    tasks, rows = group.shape
    _, count, factors, features = groups.loadings.shape
    z = torch.zeros(tasks, rows, features, device=group.device)
    noise = normal(generator, (tasks, rows, features))
    common = normal(generator, (tasks, rows, factors))
    for h in range(count):  # one at a time: all at once would hold H times the rows
        of_group = groups.middle[:, None, h] + common @ groups.loadings[:, h] + groups.own[:, None, h] * noise
        z = torch.where((group == h)[..., None], of_group, z)
    return z


def _log_likelihood(groups: Groups, z: Tensor) -> Tensor:
    """(B, N, H) log density of each row under each group."""
    columns = []
    for h in range(groups.middle.shape[1]):
        loadings = groups.loadings[:, h]  # (B, F, d)
        covariance = loadings.transpose(1, 2) @ loadings + torch.diag_embed(groups.own[:, h].square())
        # Σ = L Lᵀ; log N(z) = −|L⁻¹(z − m)|² / 2 − Σ_i log L_ii − d/2 · log 2π
        root = torch.linalg.cholesky(covariance)
        off = (z - groups.middle[:, None, h]).transpose(1, 2)  # (B, d, N)
        distance = torch.linalg.solve_triangular(root, off, upper=False).square().sum(1)
        determinant = root.diagonal(dim1=1, dim2=2).log().sum(1, keepdim=True)
        columns.append(-0.5 * distance - determinant - 0.5 * z.shape[2] * math.log(2 * math.pi))
    return torch.stack(columns, 2)

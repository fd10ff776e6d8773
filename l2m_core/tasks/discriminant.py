"""The discriminant prior: classes are normal groups that differ in their middles and share spreads and correlations.

Middles are drawn from a normal distribution, so that they can be integrated out: what a context tells of a query, whatever
is known of it, has a closed form, a linear discriminant analysis that knows how uncertain its middles are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from l2m_core.tasks.additive import draw_covariance
from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.checks import check_number, check_range
from l2m_core.tasks.draws import categorical, coin, log_uniform, normal, standardise, uniform
from l2m_core.tasks.findings import ClassCounts
from l2m_core.tasks.marginals import observe_like_a_chart
from l2m_core.tasks.missingness import Missingness, sample_missingness
from l2m_core.tasks.roles import sample_acquirable

LEAST_SPREAD = 1e-3  # of middles: of a measurement in which classes do not differ


@dataclass(frozen=True)
class DiscriminantConfig(ClassCounts):
    """Ranges of the discriminant prior."""

    apart: tuple[float, float] = (0.2, 3.0)
    """Range of the standard deviation of middles, log-uniform for each task; within a class measurements have unit variance."""
    informative: tuple[float, float] = (0.3, 1.0)
    """Range of the share of measurements in which classes differ at all."""
    evenness: tuple[float, float] = (0.7, 5.0)
    """Range of the concentration of the Dirichlet distribution that the shares of classes are drawn from, log-uniform."""
    chart_share: float = 0.5
    """Share of tasks whose measurements are shown as in a chart: skewed, rounded, as grades or codes; else as they are."""
    missingness: Missingness = field(default_factory=lambda: Missingness(mnar=0.0))
    """How values come to be missing. Where a value's own size decides, the answers taught are not quite right."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "apart", 1e-3, 100.0)
        check_range(self, "evenness", 1e-3, 1000.0)
        check_number(self, "chart_share", 0.0, 1.0)


@dataclass(frozen=True)
class Groups:
    """z: (B, N, d) measurements; covariance: (B, d, d) within a class; spread: (B, d) standard deviations of middles;
    evenness: (B,) of the classes' shares."""

    z: Tensor
    covariance: Tensor
    spread: Tensor
    evenness: Tensor

    def best_answers(self, tasks: TaskBatch, context: int, a: Tensor, generator: torch.Generator) -> Tensor:
        """(B, n, K) p(class) of the queries after `context`; a: (B, n, d) what is known of them."""
        assert tasks.n_classes is not None and tasks.truth is not None and tasks.truth.probabilities is not None
        classes = tasks.truth.probabilities.shape[2]
        z, y = self.z.double(), tasks.y[:, :context]
        count = F.one_hot(y, classes).double()  # (B, c, K)
        total = count.sum(1)  # (B, K)
        precision = torch.linalg.inv(self.covariance.double())  # within a class
        prior = torch.diag_embed(self.spread.double().clamp_min(LEAST_SPREAD) ** -2)
        known = a.double()
        both = known[..., None] * known[..., None, :]
        logits = []
        for k in range(classes):
            # N(m, V) of the middle of class k: V⁻¹ = S⁻¹ + n Σ⁻¹, m = V Σ⁻¹ Σ z
            V = torch.linalg.inv(prior + total[:, k, None, None] * precision)
            sum_of_class = (count[..., k, None] * z[:, :context]).sum(1)  # (B, d)
            m = (V @ precision @ sum_of_class[..., None])[..., 0]
            # What is not known has unit variance and no distance, and so adds nothing.
            root = torch.linalg.cholesky((self.covariance.double() + V)[:, None] * both + torch.diag_embed(1 - known))
            off = (z[:, context:] - m[:, None]) * known
            distance = torch.linalg.solve_triangular(root, off[..., None], upper=False).square().sum((-1, -2))
            height = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            share = (total[:, k] + self.evenness.double()).log()
            logits.append(share[:, None] - height - 0.5 * distance)
        absent = torch.arange(classes, device=z.device) >= tasks.n_classes[:, None]
        return torch.stack(logits, -1).masked_fill(absent[:, None], -math.inf).softmax(-1).float()


class DiscriminantPrior:
    """`sample` draws B tasks of one shape in batched tensor code, on the generator's device."""

    def __init__(self, config: DiscriminantConfig | None = None):
        self.config = config or DiscriminantConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        config = self.config
        n_classes, exists = config.draw(generator, tasks)
        classes = exists.shape[1]
        evenness = log_uniform(generator, (tasks,), *config.evenness)
        weight = _gamma(generator, evenness[:, None].expand(-1, classes)) * exists
        prevalence = weight / weight.sum(1, keepdim=True)
        y = categorical(generator, prevalence[:, None].expand(-1, rows, -1))
        covariance = draw_covariance(generator, tasks, features)
        tells = coin(generator, (tasks, features), uniform(generator, (tasks, 1), *config.informative))
        apart = log_uniform(generator, (tasks, 1), *config.apart) * uniform(generator, (tasks, features), 0.3, 1.5)
        spread = torch.where(tells, apart, 0.0)
        middles = spread[:, None] * normal(generator, (tasks, classes, features))
        noise = normal(generator, (tasks, rows, features)) @ torch.linalg.cholesky(covariance).transpose(1, 2)
        z = middles.gather(1, y[..., None].expand(-1, -1, features)) + noise
        charted, is_code = observe_like_a_chart(generator, standardise(z))
        is_chart = coin(generator, (tasks, 1, 1), config.chart_share)
        x = torch.where(is_chart, charted, z)
        is_code = is_code & is_chart[:, 0]
        acquirable = sample_acquirable(generator, tasks, features, (0, max(0, features // 2)))
        r = sample_missingness(generator, x, acquirable, config.missingness)
        # log N(z; m, Σ) up to what classes share
        precision = torch.linalg.inv(covariance)
        pulled = middles @ precision  # (B, K, d)
        logits = z @ pulled.transpose(1, 2) - 0.5 * (pulled * middles).sum(-1)[:, None] + prevalence.log()[:, None]
        form = Groups(z, covariance, spread, evenness)
        truth = Truth(logits.softmax(-1), informative=tells[:, None].expand(-1, rows, -1), form=form)
        return TaskBatch(x, r, y, n_classes, acquirable, is_code, truth)


def _gamma(generator: torch.Generator, shape: Tensor) -> Tensor:
    """Gamma draws by Wilson and Hilferty's cube of a normal: close enough for shares of classes."""
    root = normal(generator, tuple(shape.shape)) / (3 * shape.sqrt()) + 1 - 1 / (9 * shape)
    return shape * root.clamp_min(1e-2) ** 3

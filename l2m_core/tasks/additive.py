"""The additive prior: an outcome to which every feature adds a little, as to a clinical score of many small parts.

How much each part counts is drawn from a normal distribution, so that it can be integrated out: see additive_form.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from l2m_core.tasks.additive_form import LEAST_SPREAD, PRODUCTS, Form
from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.checks import check_choice, check_number, check_range
from l2m_core.tasks.draws import coin, integers, log_uniform, normal, standardise, uniform
from l2m_core.tasks.marginals import observe_like_a_chart
from l2m_core.tasks.missingness import Missingness, sample_missingness
from l2m_core.tasks.roles import sample_acquirable

FACTORS, WAVES = 5, 24


@dataclass(frozen=True)
class AdditiveConfig:
    """Ranges of the additive prior."""

    outcome: str = "classes"
    """"classes" (two) or "continuous"."""
    sharpness: tuple[float, float] = (0.5, 6.0)
    """Range of the standard deviation of a binary outcome's logit, log-uniform."""
    noise: tuple[float, float] = (0.1, 2.0)
    """Range of the noise of a continuous outcome, against a score of unit variance, log-uniform."""
    curved_share: float = 0.35
    """Share of tasks whose features count by curves: steps, hinges, both extremes, plateaus."""
    product_share: float = 0.2
    """Share of tasks in which some pairs count by their product."""
    wave_share: float = 0.15
    """Share of tasks whose outcome is a smooth function of all features together."""
    sparse_share: float = 0.25
    """Share of tasks in which some features do not count."""
    chart_share: float = 0.75
    """Share of tasks whose outcome reads what the chart shows; in the others it reads the latent quantity behind it."""
    missingness: Missingness = field(default_factory=lambda: Missingness(mnar=0.0))
    """How values come to be missing. Where a value's own size decides, the answers taught are not quite right."""

    def __post_init__(self) -> None:
        check_choice(self, "outcome", ("classes", "continuous"))
        check_range(self, "sharpness", 1e-3, 100.0)
        check_range(self, "noise", 1e-3, 100.0)
        for name in ("curved_share", "product_share", "wave_share", "sparse_share", "chart_share"):
            check_number(self, name, 0.0, 1.0)


class AdditivePrior:
    """`sample` draws B tasks of one shape in batched tensor code, on the generator's device."""

    def __init__(self, config: AdditiveConfig | None = None):
        self.config = config or AdditiveConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        config = self.config
        z, covariance = _draw_covariates(generator, tasks, rows, features)
        x, is_code = observe_like_a_chart(generator, z)
        reads_chart = coin(generator, (tasks, 1, 1), config.chart_share)
        seen = torch.where(reads_chart, standardise(x, limit=4.0), z)
        form = _draw_form(generator, config, z, covariance, seen)
        weights = form.spread[:, None] * normal(generator, (tasks, 1, form.spread.shape[1]))
        score = (form.terms(seen) * weights).sum(-1)
        acquirable = sample_acquirable(generator, tasks, features, (0, max(0, features // 2)))
        r = sample_missingness(generator, x, acquirable, config.missingness)
        informative = form.reads[:, None].expand(-1, rows, -1)
        if config.outcome == "continuous":
            y = score + form.noise * normal(generator, (tasks, rows))
            # No closed form where the outcome is bent: the truth says so by NaN.
            scale = form.scale.masked_fill(form.bend > 0, math.nan)
            mean, std = form.shift + scale * score, (scale * form.noise).expand_as(score)
            truth = Truth(mean=mean, std=std, informative=informative, form=form)
            return TaskBatch(x, r, form.to_outcome(y), None, acquirable, is_code, truth)
        p = torch.sigmoid(score)
        y = (uniform(generator, (tasks, rows)) < p).long()
        n_classes = torch.full((tasks,), 2, device=generator.device)
        truth = Truth(torch.stack([1 - p, p], -1), informative=informative, form=form)
        return TaskBatch(x, r, y, n_classes, acquirable, is_code, truth)


def _draw_covariates(generator: torch.Generator, tasks: int, rows: int, features: int) -> tuple[Tensor, Tensor]:
    """(B, N, d) normal covariates of unit variance, and their covariance (B, d, d)."""
    covariance = draw_covariance(generator, tasks, features)
    free = normal(generator, (tasks, rows, features))
    return free @ torch.linalg.cholesky(covariance).transpose(1, 2), covariance


def draw_covariance(generator: torch.Generator, tasks: int, features: int) -> Tensor:
    """(B, d, d) of covariates of unit variance that share some factors."""
    loadings = normal(generator, (tasks, FACTORS, features)) * coin(generator, (tasks, FACTORS, features), 0.6)
    used = torch.arange(FACTORS, device=generator.device) < integers(generator, (tasks, 1), 1, FACTORS)
    loadings = loadings * used[..., None]
    size = loadings.square().sum(1, keepdim=True).sqrt().clamp_min(1e-6)
    share = uniform(generator, (tasks, 1, 1)) * uniform(generator, (tasks, 1, features), 0.3, 1.0)
    loadings = share.sqrt() * loadings / size
    own = 1 - loadings.square().sum(1)  # (B, d) variance of each feature's own part
    return loadings.transpose(1, 2) @ loadings + torch.diag_embed(own + 1e-4)


def _draw_form(generator, config: AdditiveConfig, z: Tensor, covariance: Tensor, seen: Tensor) -> Form:
    tasks, _, features = z.shape
    shape, each = (tasks, 1, features), (tasks, 1)
    is_curved = coin(generator, (tasks, 1, 1), config.curved_share)
    curve = torch.where(is_curved, integers(generator, shape, 0, 5), 0)
    rate = log_uniform(generator, each, 0.2, 1.0) / math.sqrt(features) ** 0.5
    frequency = normal(generator, (tasks, features, WAVES)) * rate[..., None]
    pairs = [integers(generator, (tasks, PRODUCTS), 0, features - 1) for _ in range(2)]
    terms = features + PRODUCTS + WAVES + 1
    blank = torch.zeros(tasks, 1, terms, device=z.device)
    is_continuous = config.outcome == "continuous"
    scale = log_uniform(generator, each, 0.1, 100.0)
    is_bent = coin(generator, each, 0.25)
    form = Form(
        z, covariance, seen, curve,
        cut=0.9 * normal(generator, shape), second=0.9 * normal(generator, shape),
        first=pairs[0], other=pairs[1],
        frequency=frequency, phase=uniform(generator, (tasks, 1, WAVES), 0.0, 2 * math.pi),
        middle=blank, size=blank + 1,
        spread=_draw_spread(generator, config, tasks, features, is_continuous),
        noise=log_uniform(generator, each, *config.noise),
        shift=normal(generator, each) * scale, scale=scale,
        bend=torch.where(is_bent, log_uniform(generator, each, 0.2, 0.8), 0.0),
    )  # fmt: skip
    raw = form.terms(seen)
    middle, size = raw.mean(1, keepdim=True), raw.std(1, keepdim=True)
    # A term that is the same of all rows, the constant among them, stays as it is.
    is_flat = size < 1e-3
    return replace(form, middle=torch.where(is_flat, 0.0, middle), size=torch.where(is_flat, 1.0, size))


def _draw_spread(generator, config: AdditiveConfig, tasks: int, features: int, is_continuous: bool) -> Tensor:
    """(B, M) standard deviations of the weights; those of all terms but the constant make up the score's."""
    power = uniform(generator, (tasks, 1), 0.0, 1.0)  # from features that count alike to a few that count most
    main = normal(generator, (tasks, features)).abs().clamp_min(0.05) ** power
    is_sparse = coin(generator, (tasks, 1), config.sparse_share)
    main = torch.where(is_sparse & coin(generator, (tasks, features), uniform(generator, (tasks, 1))), 0.0, main)
    main = main / main.norm(dim=1, keepdim=True).clamp_min(1e-6)
    products = coin(generator, (tasks, 1), config.product_share) * uniform(generator, (tasks, 1), 0.2, 1.0)
    waves = coin(generator, (tasks, 1), config.wave_share) * uniform(generator, (tasks, 1), 0.5, 3.0)
    parts = torch.cat(
        [main, (products / math.sqrt(PRODUCTS)).expand(-1, PRODUCTS), (waves / math.sqrt(WAVES)).expand(-1, WAVES)], 1
    )
    parts = parts / parts.norm(dim=1, keepdim=True).clamp_min(1e-6)
    sharp = 1.0 if is_continuous else log_uniform(generator, (tasks, 1), *config.sharpness)
    constant = torch.zeros(tasks, 1, device=main.device) if is_continuous else (1 + 0.7 * sharp**2) ** 0.5
    return torch.cat([parts * sharp, constant], 1).clamp_min(LEAST_SPREAD)

"""The synthetic prior: the only thing that the released general model ever sees in pretraining.

A task is drawn in five steps, each a small catalogue of its own:
latent covariates → values as a chart would show them → scores → outcomes → what was recorded (missingness).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from l2m_core.tasks import covariates, labels
from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.draws import choice, coin, integers, log_uniform, normal, standardise, subset, uniform
from l2m_core.tasks.marginals import observe_like_a_chart
from l2m_core.tasks.missingness import Missingness, sample_missingness


@dataclass(frozen=True)
class SyntheticConfig:
    """Ranges of the synthetic prior."""

    outcome: str = "classes"
    """"classes" or "continuous"."""
    max_classes: int = 10
    """Most classes of a task; 2 makes every task binary."""
    binary_share: float = 0.75
    """Share of binary tasks among those with classes."""
    covariate_weights: tuple[float, ...] = (0.35, 0.35, 0.30)
    """Shares of gaussian, graph, cluster and rugged graph covariates; those not named have none."""
    mechanism_weights: tuple[float, ...] = (0.28, 0.07, 0.09, 0.10, 0.12, 0.04, 0.08, 0.22)
    """Shares of `labels.MECHANISMS`, the eighth that of hidden causes and effects of the covariates; those not named have
    none."""
    temperature: tuple[float, float] = (1.0, 14.0)
    """Range of the factor on scores of unit variance, log-uniform: an inverse temperature, so high means predictable."""
    noiseless_share: float = 0.12
    """Share of tasks whose outcome is all but determined by the scores."""
    gated_share: float = 0.08
    """Share of tasks in which one feature decides which others matter."""
    rare_share: float = 0.35
    """Share of binary tasks with a rare outcome, log-uniform in `rare_prevalence`."""
    rare_prevalence: tuple[float, float] = (0.01, 0.2)
    """Range of a rare outcome's prevalence, log-uniform."""
    noise: tuple[float, float] = (0.05, 2.0)
    """Range of the noise of a continuous outcome, against a signal of unit variance."""
    least_gain: float = 0.1
    """Tasks whose covariates explain less than this share of the outcome's entropy are drawn again."""
    missingness: Missingness = field(default_factory=Missingness)
    """How values come to be missing."""


class SyntheticPrior:
    """`sample` draws B tasks of one shape in batched tensor code, on the generator's device."""

    def __init__(self, config: SyntheticConfig | None = None):
        self.config = config or SyntheticConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        """Draws a quarter more tasks than asked for, and keeps those whose outcome the covariates explain well enough before any
        others: an outcome that nothing explains teaches nothing."""
        drawn = tasks + max(1, tasks // 4)
        batch, explained = self._draw(generator, drawn, rows, features)
        # A stable sort puts the tasks worth learning first and otherwise keeps the order of drawing.
        keep = (explained < self.config.least_gain).to(torch.int8).argsort(stable=True)[:tasks]
        return batch.select(keep.sort().values)

    def _draw(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> tuple[TaskBatch, Tensor]:
        config = self.config
        latent = _draw_covariates(generator, config, tasks, rows, features)
        x, categorical = observe_like_a_chart(generator, latent.z)
        # Some outcomes follow what a chart shows (grades, cuts), others the latent quantity behind it.
        reads_chart = coin(generator, (tasks, 1, 1), 0.4)
        seen = torch.where(reads_chart, standardise(x).clamp(-4.0, 4.0), latent.z)
        importance = _draw_importance(generator, tasks, features)
        if config.outcome == "classes":
            n_classes = _draw_class_counts(generator, config, tasks)
            width = int(n_classes.max())
        else:
            n_classes, width = None, 1
        scores, informative = _draw_scores(generator, config, seen, importance, latent, width)
        y, truth, explained = (
            _draw_classes(generator, config, scores, n_classes)
            if n_classes is not None
            else _draw_continuous(generator, config, scores[..., 0])
        )
        acquirable = ~coin(generator, (tasks, features), uniform(generator, (tasks, 1), 0.0, 0.6))
        # At least one feature can be asked for.
        acquirable[:, -1] = True
        r = sample_missingness(generator, x, acquirable, config.missingness)
        truth = replace(truth, informative=informative)
        return TaskBatch(x, r, y, n_classes, acquirable, categorical, truth), explained


def _draw_covariates(generator, config: SyntheticConfig, tasks: int, rows: int, features: int) -> covariates.Latent:
    kinds = choice(generator, tasks, config.covariate_weights)
    z = torch.empty(tasks, rows, features, device=generator.device)
    score = torch.zeros(tasks, rows, 4, device=generator.device)
    middles = torch.zeros(tasks, 10, features, device=generator.device)
    for index, draw in enumerate(covariates.KINDS):
        which = (kinds == index).nonzero()[:, 0]
        if len(which) == 0:
            continue
        latent = draw(generator, len(which), rows, features)
        z[which] = latent.z
        if latent.score is not None:
            score[which, :, : latent.score.shape[-1]] = latent.score
        if latent.centres is not None:
            middles[which] = latent.centres
    return covariates.Latent(covariates.add_copies_and_noise(generator, z), score, middles)


def _draw_importance(generator, tasks: int, features: int) -> Tensor:
    """(B, d): how much each feature matters; often few matter, and one much more than the rest."""
    # How many features matter: mostly few (log-uniform), at times any number.
    few = log_uniform(generator, (tasks,), 1.0, features + 0.999).long()
    many = integers(generator, (tasks,), 1, features)
    size = torch.where(coin(generator, (tasks,), 0.6), few, many)
    chosen = subset(generator, size, features)
    steepness = uniform(generator, (tasks, 1), 0.0, 2.0)
    # Exponential weights to a random power: from all alike to one that dwarfs the rest.
    weight = -uniform(generator, (tasks, features), 1e-4, 1.0).log()
    return torch.where(chosen, weight.clamp_min(1e-3) ** steepness, 0.0)


def _draw_class_counts(generator, config: SyntheticConfig, tasks: int) -> Tensor:
    # Few classes are common; ten of them are beyond what a hundred rows can teach, so they are rare.
    several = log_uniform(generator, (tasks,), 3.0, max(3, config.max_classes) + 0.999).long()
    binary = coin(generator, (tasks,), config.binary_share) | (config.max_classes == 2)
    return torch.where(binary, 2, several)


def _draw_scores(generator, config: SyntheticConfig, z: Tensor, importance: Tensor, latent, width: int):
    """(B, N, K) unit-variance scores, and (B, N, d) bool, what each row's outcome reads: a gate counts, and where the
    outcome reads hidden nodes, every feature that may tell of them."""
    tasks, rows, _ = z.shape
    kinds = choice(generator, tasks, config.mechanism_weights)
    scores = torch.zeros(tasks, rows, width, device=z.device)
    for index, mechanism in enumerate(labels.MECHANISMS):
        which = (kinds == index).nonzero()[:, 0]
        if mechanism is not labels.HIDDEN and len(which):
            scores[which] = mechanism(generator, z[which], importance[which], width)
    hidden = kinds == labels.MECHANISMS.index(labels.HIDDEN)
    # Outcomes of hidden nodes do not read the features: knowing more features tells of the nodes.
    scores = torch.where(hidden[:, None, None], _hidden_scores(generator, latent, width), scores)
    scores = standardise(scores)
    gate_index = integers(generator, (tasks, 1, 1), 0, z.shape[-1] - 1)
    has_gate = coin(generator, (tasks, 1, 1), config.gated_share)
    # Rows beyond a threshold of one feature follow other features altogether: what to measure next then depends on
    # the patient, not on the task alone.
    gated = has_gate & (z.gather(2, gate_index.expand(-1, rows, -1)) > 0.5 * normal(generator, (tasks, 1, 1)))
    others = _draw_importance(generator, *importance.shape)
    scores = torch.where(gated, standardise(labels.linear(generator, z, others, width)), scores)
    reads = torch.where(gated, (others > 0)[:, None], ((importance > 0) | hidden[:, None])[:, None])
    gate = torch.arange(z.shape[-1], device=z.device) == gate_index
    return standardise(scores), reads | (has_gate & gate)


def _hidden_scores(generator, latent: covariates.Latent, width: int) -> Tensor:
    """Outcomes that are causes or effects of the covariates, or the group a patient belongs to."""
    assert latent.score is not None and latent.centres is not None
    tasks, rows, nodes = latent.score.shape
    from_nodes = latent.score @ normal(generator, (tasks, nodes, width))
    # -|z - centre|² / 2 per feature, so that wide tables do not become noiseless by width alone
    middles = latent.centres
    near = latent.z @ middles.transpose(1, 2) - 0.5 * middles.square().sum(-1)[:, None]  # (B, N, C)
    # Each cluster belongs to one class at random; a class's score is that of its nearest cluster.
    group = torch.nn.functional.one_hot(integers(generator, near.shape[::2], 0, width - 1), width)  # (B, C, K)
    from_groups = (near[..., None] + torch.where(group > 0, 0.0, -1e4)[:, None]).amax(2)
    from_groups = from_groups.clamp_min(-50.0)
    has_groups = (middles.abs().sum((1, 2)) > 0)[:, None, None]
    return torch.where(has_groups, from_groups, from_nodes)


def _draw_classes(generator, config: SyntheticConfig, scores: Tensor, n_classes: Tensor):
    """Outcomes from scores: scaled by the inverse temperature, shifted to a drawn prevalence, then a categorical draw."""
    tasks, rows, width = scores.shape
    exists = torch.arange(width, device=scores.device) < n_classes[:, None]  # (B, K)
    graded = coin(generator, (tasks, 1, 1), 0.3) & (n_classes > 2)[:, None, None]
    grade = torch.linspace(-1.5, 1.5, width, device=scores.device) if width > 1 else scores.new_zeros(1)
    # Ordered classes: -(s - g)² up to a shared term, for grades g along one score.
    scores = torch.where(graded, scores[..., :1] * grade * 2 - grade.square(), scores)
    sharp = log_uniform(generator, (tasks, 1, 1), *config.temperature)
    sharp = torch.where(coin(generator, (tasks, 1, 1), config.noiseless_share), 40.0, sharp)
    logits = (scores * sharp).masked_fill(~exists[:, None], float("-inf"))
    target = _draw_prevalence(generator, config, exists, n_classes)
    logits = _match_prevalence(logits, target, exists)
    # Which class is which says nothing.
    order = torch.rand(tasks, width, generator=generator, device=scores.device)
    # Classes that a task lacks sort to the end, so codes 0 … K - 1 stay in use.
    order = order.masked_fill(~exists, 2.0).argsort(1)
    logits = logits.gather(2, order[:, None].expand(-1, rows, -1))
    p = logits.softmax(-1)
    y = torch.multinomial(p.flatten(0, 1), 1, generator=generator).view(tasks, rows)
    return y, Truth(probabilities=p), _explained(p)


def _draw_prevalence(generator, config: SyntheticConfig, exists: Tensor, n_classes: Tensor) -> Tensor:
    tasks, width = exists.shape
    weight = torch.where(exists, -uniform(generator, exists.shape, 1e-4, 0.999).log(), 0.0).clamp_min(0)
    weight = weight ** uniform(generator, (tasks, 1), 0.2, 1.2) * exists + 0.02 * exists
    rare = log_uniform(generator, (tasks,), *config.rare_prevalence)
    common = uniform(generator, (tasks,), 0.1, 0.9)
    # Rare outcomes are common in medicine: a share of the tasks has one for certain.
    positive = torch.where(coin(generator, (tasks,), config.rare_share), rare, common)
    pair = torch.zeros_like(weight)
    pair[:, 0], pair[:, 1] = 1 - positive, positive
    weight = torch.where((n_classes == 2)[:, None], pair, weight)
    return weight / weight.sum(1, keepdim=True)


def _match_prevalence(logits: Tensor, target: Tensor, exists: Tensor) -> Tensor:
    """Shifts each class's logit until mean p(y = k) is the target: a damped fixed point is close enough."""
    shift = torch.zeros_like(target)
    spread = logits.masked_fill(~exists[:, None], 0.0).std(1).clamp_min(1.0)  # sharp tasks need longer strides
    for _ in range(24):
        p = (logits + shift[:, None]).softmax(-1).mean(1)
        # The fixed point: shift each class by log(target / mean p), cut to 1 a round and damped.
        step = (target.clamp_min(1e-6).log() - p.clamp_min(1e-6).log()).clamp(-1.0, 1.0)
        shift = torch.where(exists, shift + 0.7 * spread.sqrt() * step, shift)
    return logits + shift[:, None]


def _explained(p: Tensor) -> Tensor:
    """(B,) share of the outcome's entropy that the mechanism's inputs explain."""
    marginal = p.mean(1)
    # (H(Y) - H(Y | inputs)) / H(Y), the share of the entropy that knowing everything would remove.
    total = -(marginal * marginal.clamp_min(1e-9).log()).sum(-1)
    left = -(p * p.clamp_min(1e-9).log()).sum(-1).mean(1)
    return 1 - left / total.clamp_min(1e-6)


def _draw_continuous(generator, config: SyntheticConfig, score: Tensor):
    """A continuous outcome: signal plus noise, some of it skewed, some with noise that grows."""
    tasks, _ = score.shape
    noise = log_uniform(generator, (tasks, 1), *config.noise)
    grows = coin(generator, (tasks, 1), 0.2)
    # Heteroscedastic noise in a fifth of the tasks: it grows with the score.
    std = noise * torch.where(grows, (0.7 * score).clamp(-2, 2).exp(), torch.ones_like(score))
    error = normal(generator, score.shape)
    heavy = coin(generator, (tasks, 1), 0.15)
    # Dividing by the root of a uniform draw gives heavy tails.
    error = torch.where(heavy, error / uniform(generator, score.shape, 0.15, 1.0).sqrt(), error)
    y = score + std * error
    skewed = coin(generator, (tasks, 1), 0.25)
    bent = (y * log_uniform(generator, (tasks, 1), 0.2, 0.8)).clamp(-6, 6).exp()
    # No closed form where the outcome is bent or the noise is not normal: the truth says so by NaN.
    mean, spread = score.masked_fill(skewed, float("nan")), std.masked_fill(skewed | heavy, float("nan"))
    scale = log_uniform(generator, (tasks, 1), 0.1, 100.0)
    shift = normal(generator, (tasks, 1)) * scale
    y = shift + scale * torch.where(skewed, bent, y)
    truth = Truth(mean=shift + scale * mean, std=scale * spread)
    return y, truth, 1 / (1 + noise[:, 0].square())

"""The synthetic prior: most of what the released model saw in pretraining.

A task is drawn in five steps, each a small catalogue of its own:
latent covariates → values as a chart would show them → scores → outcomes → what was recorded (missingness).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from l2m_core.tasks import covariates, labels
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.draws import choice, coin, integers, log_uniform, normal, standardise, subset, uniform
from l2m_core.tasks.marginals import observe_like_a_chart
from l2m_core.tasks.missingness import Missingness, sample_missingness
from l2m_core.tasks.scored_outcomes import OutcomeRanges, classes_of, continuous_of, draw_class_counts


@dataclass(frozen=True)
class SyntheticConfig(OutcomeRanges):
    """Ranges of the synthetic prior."""

    covariate_weights: tuple[float, ...] = (0.35, 0.35, 0.30)
    """Shares of gaussian, graph, cluster and rugged graph covariates; those not named have none."""
    mechanism_weights: tuple[float, ...] = (0.28, 0.07, 0.09, 0.10, 0.12, 0.04, 0.08, 0.22)
    """Shares of `labels.MECHANISMS`, the eighth that of hidden causes and effects of the covariates; those not named have
    none."""
    gated_share: float = 0.08
    """Share of tasks in which one feature decides which others matter."""
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
            n_classes = draw_class_counts(generator, config, tasks)
            width = int(n_classes.max())
        else:
            n_classes, width = None, 1
        scores, informative = _draw_scores(generator, config, seen, importance, latent, width)
        y, truth, explained = (
            classes_of(generator, config, scores, n_classes)
            if n_classes is not None
            else continuous_of(generator, config, scores[..., 0])
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

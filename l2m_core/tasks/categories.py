"""The categories prior: tables whose columns are mostly texts, as of wards, drugs and answers, each telling something of its own.

Codes have no order, so nothing can be read between two of them: what each tells has to be learnt from the rows that have it. An
outcome follows from a table of effects for each column, from tables of pairs of columns, or from rules such as "one of these
wards, and none of those drugs". Some columns are measurements all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from l2m_core.tasks.additive import draw_covariance
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.checks import check_number, check_range
from l2m_core.tasks.draws import coin, columns_at, integers, log_uniform, normal, standardise, uniform
from l2m_core.tasks.marginals import observe_like_a_chart
from l2m_core.tasks.missingness import Missingness, sample_missingness
from l2m_core.tasks.roles import sample_acquirable
from l2m_core.tasks.scored_outcomes import OutcomeRanges, classes_of, continuous_of, draw_class_counts

MOST_LEVELS = 12
PAIRS, RULES, CONDITIONS = 8, 10, 3


@dataclass(frozen=True)
class CategoriesConfig(OutcomeRanges):
    """Ranges of the categories prior."""

    levels: tuple[float, float] = (2.0, 9.0)
    """Range of how many levels a column has, log-uniform."""
    categories: tuple[float, float] = (0.4, 1.3)
    """Range of the share of columns that are categories; above 1: all of them."""
    unordered_share: float = 0.75
    """Share of tasks that say of their categories that codes have no order; the others give them as plain numbers."""
    pair_share: float = 0.3
    """Share of tasks in which pairs of columns tell more than each by itself."""
    rule_share: float = 0.3
    """Share of tasks whose outcome follows from rules."""
    missingness: Missingness = field(default_factory=Missingness)
    """How values come to be missing."""

    def __post_init__(self) -> None:
        check_range(self, "levels", 2.0, float(MOST_LEVELS))
        check_range(self, "categories", 0.0, 10.0)
        for name in ("unordered_share", "pair_share", "rule_share"):
            check_number(self, name, 0.0, 1.0)


class CategoriesPrior:
    """`sample` draws B tasks of one shape in batched tensor code, on the generator's device."""

    def __init__(self, config: CategoriesConfig | None = None):
        self.config = config or CategoriesConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        config = self.config
        is_continuous = config.outcome == "continuous"
        n_classes = None if is_continuous else draw_class_counts(generator, config, tasks)
        width = 1 if n_classes is None else int(n_classes.max())
        root = torch.linalg.cholesky(draw_covariance(generator, tasks, features))
        z = normal(generator, (tasks, rows, features)) @ root.transpose(1, 2)
        charted, is_code = observe_like_a_chart(generator, z)
        code = _draw_codes(generator, config, z)  # (B, N, d)
        share = uniform(generator, (tasks, 1), *config.categories)
        is_category = coin(generator, (tasks, features), share)
        x = torch.where(is_category[:, None], code.to(z.dtype), charted)
        scores, reads = _draw_scores(generator, config, code, standardise(charted, limit=4.0), is_category, width)
        if n_classes is None:
            y, truth, _ = continuous_of(generator, config, scores[..., 0])
        else:
            y, truth, _ = classes_of(generator, config, scores, n_classes)
        acquirable = sample_acquirable(generator, tasks, features, (0, max(0, features // 2)))
        r = sample_missingness(generator, x, acquirable, config.missingness)
        is_unordered = (is_category | is_code) & coin(generator, (tasks, 1), config.unordered_share)
        truth = replace(truth, informative=reads[:, None].expand(-1, rows, -1))
        return TaskBatch(x, r, y, n_classes, acquirable, is_unordered, truth)


def _draw_codes(generator: torch.Generator, config: CategoriesConfig, z: Tensor) -> Tensor:
    """z: (B, N, d) latent → (B, N, d) int64 codes, of levels that are not equally common."""
    tasks, _, features = z.shape
    count = log_uniform(generator, (tasks, 1, features), config.levels[0], config.levels[1] + 0.999).floor()
    # Shares of the levels, a power of exponential draws: from all alike to one that nearly all rows have.
    weight = -uniform(generator, (tasks, MOST_LEVELS, features), 1e-4, 0.9999).log()
    weight = weight ** uniform(generator, (tasks, 1, features), 0.0, 1.5)
    weight = weight * (torch.arange(MOST_LEVELS, device=z.device)[:, None] < count)
    cut = (weight.cumsum(1) / weight.sum(1, keepdim=True)).clamp_max(1.0)  # (B, L, d), 1 from the last level on
    position = torch.special.ndtr(z).clamp(1e-6, 1 - 1e-6)
    level = (position[:, :, None] > cut[:, None]).sum(2).clamp_max(count.long() - 1)
    # Which code a level has says nothing; codes in use stay 0 … m - 1.
    order = uniform(generator, (tasks, MOST_LEVELS, features)) + (
        torch.arange(MOST_LEVELS, device=z.device)[:, None] >= count
    )
    return order.argsort(1).argsort(1).gather(1, level)


def _draw_scores(
    generator: torch.Generator,
    config: CategoriesConfig,
    code: Tensor,
    charted: Tensor,
    is_category: Tensor,
    width: int,
) -> tuple[Tensor, Tensor]:
    """(B, N, K) scores of unit variance, and (B, d) bool, what they read.

    In pairs and rules a measurement counts by the level that its latent quantity would have.
    """
    tasks, _, features = code.shape
    power = uniform(generator, (tasks, 1), 0.0, 2.0)  # from columns that count alike to a few that count most
    importance = -uniform(generator, (tasks, features), 1e-4, 0.9999).log()
    is_used = coin(generator, (tasks, features), uniform(generator, (tasks, 1), 0.2, 1.3))
    is_used[:, 0] |= ~is_used.any(1)
    importance = importance**power * is_used
    own = _effects(generator, code, is_category, charted, width) * importance[:, None, :, None]
    scores = standardise(own.sum(2))
    first, other = (torch.multinomial(importance + 1e-9, PAIRS, True, generator=generator) for _ in range(2))
    pairs = standardise(_of_pairs(generator, code, first, other, width))
    has_pairs = coin(generator, (tasks, 1, 1), config.pair_share)
    scores = scores + has_pairs * uniform(generator, (tasks, 1, 1), 0.3, 2.0) * pairs
    asked = torch.multinomial(importance + 1e-9, RULES * CONDITIONS, True, generator=generator)
    rules = standardise(_of_rules(generator, code, asked, width))
    has_rules = coin(generator, (tasks, 1, 1), config.rule_share)
    scores = torch.where(has_rules, uniform(generator, (tasks, 1, 1), 0.0, 0.5) * scores + rules, scores)
    return standardise(scores), is_used


def _effects(generator: torch.Generator, code: Tensor, is_category: Tensor, charted: Tensor, width: int) -> Tensor:
    """(B, N, d, K): what each column adds by itself: a category by its level, a measurement along a line."""
    tasks, _, features = code.shape
    table = normal(generator, (tasks, MOST_LEVELS, features, width))
    # Some levels say nothing: all rows that have one of them look alike.
    table = table * coin(generator, (tasks, MOST_LEVELS, features, 1), uniform(generator, (tasks, 1, 1, 1), 0.4, 1.4))
    of_level = table.gather(1, code[..., None].expand(-1, -1, -1, width))
    along = charted[..., None] * normal(generator, (tasks, 1, features, width))
    return torch.where(is_category[:, None, :, None], of_level, along)


def _of_pairs(generator: torch.Generator, code: Tensor, first: Tensor, other: Tensor, width: int) -> Tensor:
    """(B, N, K): a table for each pair of columns, with an effect of its own in each of its cells. first, other: (B, P)."""
    tasks = len(code)
    cell = columns_at(code, first) * MOST_LEVELS + columns_at(code, other)  # (B, N, P)
    table = normal(generator, (tasks, MOST_LEVELS**2, PAIRS, width))
    counted = coin(generator, (tasks, 1, PAIRS, 1), 0.5)
    return (table.gather(1, cell[..., None].expand(-1, -1, -1, width)) * counted).sum(2)


def _of_rules(generator: torch.Generator, code: Tensor, asked: Tensor, width: int) -> Tensor:
    """(B, N, K): rules that hold where each of a few columns has one of some levels. asked: (B, R · C) columns."""
    tasks, rows, _ = code.shape
    allowed = coin(generator, (tasks, MOST_LEVELS, RULES * CONDITIONS), uniform(generator, (tasks, 1, 1), 0.2, 0.7))
    holds = allowed.gather(1, columns_at(code, asked)).view(tasks, rows, RULES, CONDITIONS)
    # A rule of fewer conditions: the others hold always.
    needed = torch.arange(CONDITIONS, device=code.device) < integers(generator, (tasks, 1, RULES, 1), 1, CONDITIONS)
    applies = (holds | ~needed).all(3).to(torch.float32)  # (B, N, R)
    counted = coin(generator, (tasks, RULES, 1), uniform(generator, (tasks, 1, 1), 0.2, 1.0))
    counted[:, 0] = True
    return applies @ (normal(generator, (tasks, RULES, width)) * counted)

"""The signs prior: a disease shows in signs that others lack altogether, and what it shows varies where health does not.

The findings prior moves the middle of a value and leaves its spread alone. Here a sign is absent but for a few patients, or there
in some grade; a measurement is narrow among those whom nothing ails, and wide among the ill. So one value may all but settle the
outcome, and another say nothing, in the same column.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from l2m_core.tasks.batch import TaskBatch, Truth
from l2m_core.tasks.checks import check_number
from l2m_core.tasks.draws import categorical, coin, log_uniform, normal, uniform
from l2m_core.tasks.findings import ClassShares, draw_classes, share_out
from l2m_core.tasks.missingness import Missingness, sample_missingness
from l2m_core.tasks.roles import sample_acquirable

MOST_GRADES = 9


@dataclass(frozen=True)
class SignsConfig(ClassShares):
    """Ranges of the signs prior."""

    forms: int = 3
    """Most forms of a class, each with signs of its own: within a class signs then go together."""
    shown: tuple[float, float] = (0.1, 0.7)
    """Range of the share of its informative signs that a form shows, log-uniform."""
    informative: tuple[float, float] = (0.15, 1.0)
    """Range of the share of signs that tell about the outcome at all."""
    background: tuple[float, float] = (0.003, 0.2)
    """Range of how often a sign is there that a form does not show, log-uniform."""
    sensitivity: tuple[float, float] = (0.3, 1.0)
    """Range of how often a sign is there that a form shows."""
    error: tuple[float, float] = (0.002, 0.1)
    """Range of the share of patients whose sign is recorded at random, log-uniform for each task."""
    missingness: Missingness = field(default_factory=Missingness)
    """How values come to be missing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "forms", 1, 8)


@dataclass(frozen=True)
class Forms:
    """What each of H forms shows in each sign.

    grades: (B, H, d, G), how often it has each grade; middle, spread: (B, H, d), of the signs that are measured on a scale;
    shows: (B, H, d) bool, whether it differs there from whoever is not ill.
    """

    grades: Tensor
    middle: Tensor
    spread: Tensor
    shows: Tensor


class SignsPrior:
    """`sample` draws B tasks of one shape in batched tensor code, on the generator's device."""

    def __init__(self, config: SignsConfig | None = None):
        self.config = config or SignsConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        config = self.config
        n_classes, prevalence = draw_classes(generator, config, tasks)
        weight = share_out(generator, config.forms, prevalence)  # (B, H): form h is of class h mod K
        forms = _draw_forms(generator, config, tasks, weight.shape[1], features)
        form = categorical(generator, weight[:, None].expand(-1, rows, -1))  # (B, N)
        grade, value = _show(generator, forms, form)
        is_number = coin(generator, (tasks, 1, features), uniform(generator, (tasks, 1, 1)))
        likelihood = _log_likelihood(forms, grade, value, is_number)  # (B, N, H)
        classes = prevalence.shape[1]
        logits = (likelihood + weight.log()[:, None]).unflatten(2, (-1, classes)).logsumexp(2)
        acquirable = sample_acquirable(generator, tasks, features, (0, max(0, features // 2)))
        x = torch.where(is_number, _stretch(generator, value), grade.to(value.dtype))
        r = sample_missingness(generator, x, acquirable, config.missingness)
        truth = Truth(
            probabilities=logits.softmax(-1), informative=_told_by(forms, weight)[:, None].expand(-1, rows, -1)
        )
        return TaskBatch(x, r, form % classes, n_classes, acquirable, torch.zeros_like(acquirable), truth)


def _draw_forms(generator: torch.Generator, config: SignsConfig, tasks: int, forms: int, features: int) -> Forms:
    shape, of_sign = (tasks, forms, features), (tasks, 1, features)
    tells = coin(generator, of_sign, uniform(generator, (tasks, 1, 1), *config.informative))
    shows = tells & coin(generator, shape, log_uniform(generator, (tasks, 1, 1), *config.shown))
    present = torch.where(
        shows, uniform(generator, shape, *config.sensitivity), log_uniform(generator, of_sign, *config.background)
    )
    severity = torch.where(shows, uniform(generator, shape, 0.1, 1.0), uniform(generator, of_sign, 0.0, 0.5))
    error = log_uniform(generator, (tasks, 1, 1), *config.error)
    grades = _grade_tables(generator, present, severity, error)
    # Signs on a scale: the ill differ in their middle, and more among themselves.
    way = torch.where(coin(generator, of_sign, 0.5), 1.0, -1.0)
    size = log_uniform(generator, (tasks, 1, 1), 0.3, 5.0) * uniform(generator, shape, 0.0, 1.5)
    wider = log_uniform(generator, shape, 0.5, 4.0)
    return Forms(grades, torch.where(shows, way * size, 0.0), torch.where(shows, wider, 1.0), shows)


def _grade_tables(generator: torch.Generator, present: Tensor, severity: Tensor, error: Tensor) -> Tensor:
    """(B, H, d, G): how often each form has each grade; 0 is absent, and grades above a sign's highest have none."""
    tasks, _, features = present.shape
    # Most signs are yes or no, or have a few grades.
    highest = log_uniform(generator, (tasks, 1, features, 1), 1.0, MOST_GRADES + 0.999).floor()
    grade = torch.arange(MOST_GRADES + 1, device=generator.device, dtype=present.dtype)
    # Of the grades above absent, a binomial of the severity: log C(m - 1, g - 1) + …, where the sign has m.
    above, trials = (grade - 1).clamp_min(0), highest - 1
    left = (trials - above).clamp_min(0)
    ways = torch.lgamma(trials + 1) - torch.lgamma(above + 1) - torch.lgamma(left + 1)
    p = severity[..., None].clamp(1e-4, 1 - 1e-4)
    binomial = (ways + above * p.log() + left * (1 - p).log()).exp()
    exists = grade <= highest
    table = torch.where(grade == 0, 1 - present[..., None], present[..., None] * binomial) * exists
    table = (1 - error[..., None]) * table + error[..., None] * exists / (highest + 1)
    # Now and then the common state is the highest grade, as where a chart says "normal: yes".
    is_turned = coin(generator, (tasks, 1, features, 1), 0.15)
    turned = table.gather(3, (highest - grade).clamp_min(0).long().expand_as(table)) * exists
    return torch.where(is_turned, turned, table)


def _show(generator: torch.Generator, forms: Forms, form: Tensor) -> tuple[Tensor, Tensor]:
    """(B, N, d) grades and (B, N, d) measurements of rows of these forms; of each sign one of the two is recorded."""
    tasks, rows = form.shape
    features = forms.middle.shape[2]
    index = form[..., None].expand(-1, -1, features)
    tables = forms.grades.gather(1, index[..., None].expand(-1, -1, -1, forms.grades.shape[3]))
    noise = normal(generator, (tasks, rows, features))
    return categorical(generator, tables), forms.middle.gather(1, index) + forms.spread.gather(1, index) * noise


def _log_likelihood(forms: Forms, grade: Tensor, value: Tensor, is_number: Tensor) -> Tensor:
    """(B, N, H) log likelihood of each row under each form, up to a term that all share."""
    columns = []
    for h in range(forms.middle.shape[1]):
        table = forms.grades[:, None, h].expand(-1, grade.shape[1], -1, -1)
        of_grade = table.gather(3, grade[..., None])[..., 0].clamp_min(1e-12).log()
        spread = forms.spread[:, None, h]
        of_value = -0.5 * ((value - forms.middle[:, None, h]) / spread).square() - spread.log()
        columns.append(torch.where(is_number, of_value, of_grade).sum(2))
    return torch.stack(columns, 2)


def _stretch(generator: torch.Generator, value: Tensor) -> Tensor:
    """Measurements on scales of their own, some of them skewed: what a row tells stays the same."""
    tasks, _, features = value.shape
    power = log_uniform(generator, (tasks, 1, features), 0.1, 0.7)
    skewed = (power * value).clamp(-8.0, 8.0).exp()
    return torch.where(coin(generator, (tasks, 1, features), 0.4), skewed, value)


def _told_by(forms: Forms, weight: Tensor) -> Tensor:
    """(B, d): signs that a form shows; of all others every form has the same grades and measurements."""
    return (forms.shows & (weight > 0)[..., None]).any(1)

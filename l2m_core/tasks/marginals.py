"""From latent covariates to values that look like a chart: skewed labs, counts, yes/no findings, grades, codes."""

from __future__ import annotations

import torch
from torch import Tensor

from l2m_core.tasks.draws import choice, coin, integers, log_uniform, normal, uniform

KINDS = ("as is", "skewed", "heavy tails", "bounded", "rounded", "zero-inflated", "binary", "grades", "codes")
WEIGHTS = (0.22, 0.15, 0.06, 0.06, 0.08, 0.06, 0.17, 0.12, 0.08)
MAX_LEVELS = 12


def observe_like_a_chart(generator: torch.Generator, z: Tensor) -> tuple[Tensor, Tensor]:
    """z: (B, N, d) latent → (x, categorical): values as recorded, and (B, d) bool where codes have no order."""
    tasks, _, features = z.shape
    # Half of the tasks prefer one kind for most features: whole tables of findings, or of labs, are common.
    kind = choice(generator, tasks * features, WEIGHTS).view(tasks, 1, features)
    favourite = choice(generator, tasks, WEIGHTS).view(tasks, 1, 1)
    follows = coin(generator, (tasks, 1, features), 0.8) & coin(generator, (tasks, 1, 1), 0.4)
    kind = torch.where(follows, favourite, kind)
    shape = (tasks, 1, features)
    power = log_uniform(generator, shape, 0.2, 1.5)
    flip = torch.where(coin(generator, shape, 0.5), 1.0, -1.0)
    # Rounding: from a tenth of a standard deviation to a whole one.
    step = log_uniform(generator, shape, 0.1, 1.0)
    cut = _skewed_threshold(generator, shape)
    grade = _grade(generator, z)
    # In the order of KINDS. All are computed for every cell and one is kept: cheaper than a loop over features.
    candidates = (
        z,
        (power * flip * z).clamp_max(6.0).exp(),
        z.sign() * ((z.abs() * power).exp() - 1).clamp_max(60.0),
        torch.special.ndtr(1.7 * z),
        (z / step).round() * step,
        (flip * z - cut.clamp(-1.0, 1.5)).clamp_min(0.0),
        (z > cut).to(z.dtype),
        grade,
        _recode(generator, grade),
    )
    x = z
    for index, candidate in enumerate(candidates):
        x = torch.where(kind == index, candidate, x)
    return x, (kind == KINDS.index("codes"))[:, 0]


def _skewed_threshold(generator: torch.Generator, shape: tuple[int, ...]) -> Tensor:
    """Cut points such that findings are often rare, and now and then nearly universal."""
    return 0.9 * normal(generator, shape) + torch.where(coin(generator, shape, 0.5), 0.8, 0.0)


def _grade(generator: torch.Generator, z: Tensor) -> Tensor:
    """Ordered whole grades 0 … m-1, with m from 3 to MAX_LEVELS, by random cut points."""
    tasks, _, features = z.shape
    levels = integers(generator, (tasks, 1, features), 3, MAX_LEVELS)
    centre = uniform(generator, (tasks, 1, features), -0.5, 1.0)
    width = log_uniform(generator, (tasks, 1, features), 0.5, 1.5)
    # Φ maps the latent value to 0 … 1; its centre and width make the grades unequally common.
    position = torch.special.ndtr((z - centre) / width) * levels
    return position.floor().clamp(min=torch.zeros_like(levels), max=levels - 1)


def _recode(generator: torch.Generator, grade: Tensor) -> Tensor:
    """The same levels under shuffled codes, so that their order says nothing."""
    tasks, rows, features = grade.shape
    # A random permutation of the codes for each feature, applied by a gather.
    code = torch.rand(tasks, MAX_LEVELS, features, generator=generator, device=grade.device).argsort(1)
    return code.gather(1, grade.long()).to(grade.dtype)

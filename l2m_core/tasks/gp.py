"""The gp prior: a continuous outcome that is a smooth random function of a few features.

Where the study leaves a detail open, the defaults are this project's own: covariates are independent standard normals; the
output scale is a standard deviation; the informative subset has 1 to 6 features. The study's published code has covariates
uniform between -2 and 2, the output scale as the kernel's factor (a variance), and from one to all features informative:
`covariates: uniform`, `scale_of: variance`, `informative: [1, d]`. In both, the noise is a standard deviation and length-scales
are drawn for each feature alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from l2m_core.errors import TrainingError
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.checks import check_choice, check_number, check_range
from l2m_core.tasks.draws import coin, normal, uniform
from l2m_core.tasks.missingness import Missingness
from l2m_core.tasks.outcomes import draw_continuous
from l2m_core.tasks.recorded import as_recorded
from l2m_core.tasks.roles import sample_informative

# The length-scale of features that say nothing: over this length the function is flat to float32.
FLAT = 1e4


@dataclass(frozen=True)
class GPConfig:
    """Ranges of the gp prior."""

    kernel: str = "rbf"
    """"rbf" (pretraining), "matern32", "matern52", or "matern": each task draws one of the two (evaluation)."""
    length_scale: tuple[float, float] = (0.1, 5.0)
    """Range of the length-scale of an informative feature, uniform."""
    output_scale: tuple[float, float] = (0.5, 2.0)
    """Range of the size of the function, uniform."""
    scale_of: str = "deviation"
    """What `output_scale` is of the function: its standard "deviation" or its "variance"."""
    covariates: str = "normal"
    """"normal": independent standard normals; "uniform": independent and uniform between -2 and 2."""
    noise: float = 0.02
    """Standard deviation of the noise on the outcome."""
    informative: tuple[int, int] = (1, 6)
    """Range of the number of informative features, at most all of them."""
    baseline: tuple[int, int] = (0, 3)
    """Range of the number of baseline features; at least one feature stays acquirable."""
    missingness: Missingness = field(default_factory=Missingness)
    """How values come to be missing."""

    def __post_init__(self) -> None:
        check_choice(self, "kernel", ("rbf", "matern32", "matern52", "matern"))
        check_choice(self, "scale_of", ("deviation", "variance"))
        check_choice(self, "covariates", ("normal", "uniform"))
        check_range(self, "length_scale", 1e-3, FLAT)
        check_range(self, "output_scale", 1e-3, 1e3)
        check_number(self, "noise", 1e-4, 1e3)
        check_range(self, "informative", 1, 1_000_000)
        check_range(self, "baseline", 0, 1_000_000)


class GPPrior:
    """Draws the function's values at all rows of a task at once: memory grows with B · N²."""

    def __init__(self, config: GPConfig | None = None):
        self.config = config or GPConfig()

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        config = self.config
        shape = (tasks, rows, features)
        x = normal(generator, shape) if config.covariates == "normal" else uniform(generator, shape, -2.0, 2.0)
        informative = sample_informative(generator, (tasks,), features, config.informative)
        length = uniform(generator, (tasks, features), *config.length_scale)
        # A feature of a huge length-scale does not change the function: that is how it is made uninformative.
        length = torch.where(informative, length, torch.full_like(length, FLAT))
        scale = uniform(generator, (tasks, 1, 1), *config.output_scale)
        variance = scale.square() if config.scale_of == "deviation" else scale
        covariance = variance * _correlation(generator, config.kernel, x, length)
        # f = L ε with L Lᵀ = K is a draw of N(0, K).
        function = (_cholesky(covariance) @ normal(generator, (tasks, rows, 1))).squeeze(-1)
        y, truth = draw_continuous(generator, function, torch.full_like(function, config.noise))
        truth = replace(truth, informative=informative.unsqueeze(1).expand(tasks, rows, features))
        return as_recorded(generator, config, x, y, None, truth)


def rbf(distance: Tensor) -> Tensor:
    return torch.exp(-0.5 * distance.square())


def matern32(distance: Tensor) -> Tensor:
    # k(r) = (1 + √3 r) exp(-√3 r)
    scaled = 3**0.5 * distance
    return (1 + scaled) * torch.exp(-scaled)


def matern52(distance: Tensor) -> Tensor:
    # k(r) = (1 + √5 r + 5 r² / 3) exp(-√5 r)
    scaled = 5**0.5 * distance
    return (1 + scaled + scaled.square() / 3) * torch.exp(-scaled)


_KERNELS: dict[str, Callable[[Tensor], Tensor]] = {"rbf": rbf, "matern32": matern32, "matern52": matern52}


def _correlation(generator: torch.Generator, kernel: str, x: Tensor, length: Tensor) -> Tensor:
    """x: (B, N, d), length: (B, d) → (B, N, N), ones on the diagonal."""
    scaled = x / length.unsqueeze(1)
    # By differences: the product formula loses the short distances that short length-scales turn on.
    distance = torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist")
    if kernel == "matern":
        rougher = coin(generator, (len(x), 1, 1), 0.5)
        return torch.where(rougher, matern32(distance), matern52(distance))
    return _KERNELS[kernel](distance)


def _cholesky(covariance: Tensor) -> Tensor:
    """Smooth kernels are singular in float32; a little white noise (jitter) mends that, as little as will do.

    The covariance is written over.
    """
    # Jitter relative to the variance, so that the output scale does not matter.
    size = covariance.diagonal(dim1=-2, dim2=-1).mean(dim=-1, keepdim=True)
    _add_to_diagonal(covariance, 1e-5 * size)
    factor, failed = torch.linalg.cholesky_ex(covariance)
    left = failed.nonzero().squeeze(1)
    # Only the tasks that failed are tried again, with ten times the jitter each time.
    for jitter in (1e-4, 1e-3, 1e-2):
        if len(left) == 0:
            return factor
        again = covariance[left]
        _add_to_diagonal(again, jitter * size[left])
        factor[left], failed = torch.linalg.cholesky_ex(again)
        left = left[failed > 0]
    if len(left) > 0:
        rows = covariance.shape[-1]
        raise TrainingError(f"The gp prior's covariance of {rows} rows stays singular; draw fewer rows per task.")
    return factor


def _add_to_diagonal(matrix: Tensor, value: Tensor) -> None:
    matrix.diagonal(dim1=-2, dim2=-1).add_(value)

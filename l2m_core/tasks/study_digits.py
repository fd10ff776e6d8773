"""The study's digit tasks: a picture shows one of two digits, and its features are the means of 20 blocks of pixels.

The 28 × 28 pixels are cut into a grid of 7 × 7 blocks; `block_ROW_COLUMN` is counted from 0. Two digits are drawn for each
task, and the outcome is which of them a picture shows. (`digits` is this project's own: two digits side by side, pixels as
features.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from l2m_core.errors import ConfigError
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.checks import check_choice
from l2m_core.tasks.draws import integers, standardise, subset, uniform
from l2m_core.tasks.missingness import Missingness, sample_missingness
from l2m_core.tasks.study import study_missingness

GRID = 7
BLOCKS = (
    "block_0_4", "block_1_6", "block_2_2", "block_3_5", "block_0_3", "block_0_2", "block_5_2", "block_4_6", "block_5_0",
    "block_4_2", "block_4_3", "block_5_6", "block_6_3", "block_3_3", "block_1_3", "block_5_1", "block_4_4", "block_3_2",
    "block_5_5", "block_2_4",
)  # fmt: skip
"""The study's 20 blocks, in its order."""


@dataclass(frozen=True)
class StudyDigitsConfig:
    """Which blocks are seen, which digits are told apart."""

    blocks: tuple[str, ...] = BLOCKS
    """Names of the blocks that are features."""
    digits: tuple[int, ...] = tuple(range(10))
    """Digits that tasks draw their two from, so that some can be held out."""
    normalised: bool = True
    """Whether features are given with mean 0 and variance 1 over the task's rows, as the study trains."""
    missingness: Missingness = field(default_factory=study_missingness)
    """How values come to be missing."""

    def __post_init__(self) -> None:
        known = {f"block_{row}_{column}" for row in range(GRID) for column in range(GRID)}
        for name in self.blocks:
            if name not in known:
                raise ConfigError(f"StudyDigitsConfig.blocks has {name!r}; blocks are block_0_0 to block_6_6.")
        if len(set(self.digits)) < 2 or not set(self.digits) <= set(range(10)):
            raise ConfigError(f"StudyDigitsConfig.digits is {self.digits!r}; give two or more of 0 to 9.")
        check_choice(self, "normalised", (True, False))


class StudyDigitsPrior:
    """`sample` draws tasks from images: (M, H, W), labels: (M,) 0 to 9. Height and width are multiples of 7."""

    def __init__(
        self, config: StudyDigitsConfig | None = None, *, images: np.ndarray | Tensor, labels: np.ndarray | Tensor
    ):
        self.config = config or StudyDigitsConfig()
        pictures = torch.as_tensor(images).float()
        if pictures.ndim != 3 or len(pictures) != len(labels) or any(size % GRID for size in pictures.shape[1:]):
            raise ConfigError(
                f"Images have shape {tuple(pictures.shape)} and there are {len(labels)} labels; give (count, height, "
                f"width) of multiples of {GRID}, as MNIST's 28 × 28, and as many labels."
            )
        size = pictures.shape[1] // GRID, pictures.shape[2] // GRID
        every = torch.nn.functional.avg_pool2d(pictures.unsqueeze(1), size).flatten(1)  # (M, 49)
        positions = [
            int(row) * GRID + int(column) for _, row, column in (name.split("_") for name in self.config.blocks)
        ]
        self._x = every[:, positions]
        code = torch.as_tensor(labels).long()
        # Pictures sorted by digit: each digit's are a stretch, from which rows are drawn by rank.
        self._of_digit = code.argsort(stable=True)
        self._count = torch.bincount(code, minlength=10)
        self._begin = self._count.cumsum(0) - self._count

    @property
    def features(self) -> int:
        return self._x.shape[1]

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int | None = None) -> TaskBatch:
        if features not in (None, self.features):
            raise ConfigError(f"These tasks have {self.features} blocks, not {features}; ask for {self.features}.")
        self._move(generator.device)
        device = self._x.device
        two = self._draw_digits(generator, tasks)  # (B, 2)
        available = self._count[two].sum(dim=1)
        if int(available.min()) < rows:
            raise ConfigError(
                f"Two of the digits have {int(available.min())} pictures together, fewer than {rows} rows."
            )
        # Ranks without replacement among the pictures of both digits: no picture is in the context and asked about.
        key = uniform(generator, (tasks, int(available.max())))
        absent = torch.arange(key.shape[1], device=device) >= available.unsqueeze(1)
        rank = key.masked_fill(absent, 2.0).argsort(dim=1)[:, :rows]
        first = self._count[two[:, :1]]
        y = (rank >= first).long()
        picture = self._of_digit[self._begin[two.gather(1, y)] + torch.where(y == 1, rank - first, rank)]
        x = self._x[picture]
        x = standardise(x) if self.config.normalised else x
        acquirable = torch.ones(tasks, self.features, dtype=torch.bool, device=device)
        return TaskBatch(
            x=x,
            r=sample_missingness(generator, x, acquirable, self.config.missingness, y),
            y=y,
            n_classes=torch.full((tasks,), 2, device=device),
            acquirable=acquirable,
            categorical=torch.zeros_like(acquirable),
        )

    def _draw_digits(self, generator: torch.Generator, tasks: int) -> Tensor:
        """(B, 2) two different digits in random order: which of them is class 1 says nothing."""
        allowed = torch.tensor(self.config.digits, device=self._x.device)
        chosen = subset(generator, torch.full((tasks,), 2, device=self._x.device), len(allowed))
        pair = allowed.expand(tasks, -1)[chosen].view(tasks, 2)
        swapped = integers(generator, (tasks, 1), 0, 1).bool()
        return torch.where(swapped, pair.flip(1), pair)

    def _move(self, device: torch.device) -> None:
        """The pictures follow the generator once."""
        if self._x.device != device:
            for name in ("_x", "_of_digit", "_count", "_begin"):
                setattr(self, name, getattr(self, name).to(device))

"""Digit tasks: features are pixels, an action uncovers a block of them.

Where the study leaves a detail open: two digits side by side are cut into 20 blocks, 2 × 5 over each digit, so that no
block straddles both; a task uses some of the ten digits and asks one question about the picture.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from l2m_core.errors import ConfigError
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.checks import check_choice, check_number, check_range
from l2m_core.tasks.draws import choice, integers, subset, uniform
from l2m_core.tasks.missingness import Missingness, sample_missingness

QUESTIONS = ("left", "right", "larger", "same_parity")
LAYOUTS = ("pair", "single")


@dataclass(frozen=True)
class DigitsConfig:
    """What a picture shows and what is asked."""

    layout: str = "pair"
    """"pair": two digits side by side; "single": one digit, always asked which ("left")."""
    questions: tuple[str, ...] = QUESTIONS
    """Of a pair: which digit is on the left, or right; is the left one larger; are both odd or both even."""
    digits: tuple[int, ...] = tuple(range(10))
    """Digits that tasks may use, so that some can be held out."""
    used: tuple[int, int] = (2, 10)
    """Range of the number of digits that a task uses; (2, 2) with layout "single" tells two digits apart."""
    blocks: tuple[int, int] = (2, 5)
    """Rows and columns of the grid over each digit: a pair has twice their product of actions."""
    pool: int = 2
    """Pixels are averaged over squares of this size: 2 makes 14 × 14 of 28 × 28."""
    missingness: Missingness = field(default_factory=lambda: Missingness.only("mcar", rate=(0.0, 0.5)))
    """Decides about blocks, not pixels."""

    def __post_init__(self) -> None:
        check_choice(self, "layout", LAYOUTS)
        for name, allowed in (("questions", QUESTIONS), ("digits", tuple(range(10)))):
            values = tuple(getattr(self, name))
            if not values or len(set(values)) < len(values) or not set(values) <= set(allowed):
                raise ConfigError(f"DigitsConfig.{name} is {values!r}; choose some of {', '.join(map(str, allowed))}.")
            object.__setattr__(self, name, values)
        check_range(self, "used", 2, len(self.digits))
        check_number(self, "pool", 1, 1000)
        if len(self.blocks) != 2 or min(self.blocks) < 1:
            raise ConfigError(f"DigitsConfig.blocks is {self.blocks!r}; give two whole numbers from 1, as in [2, 5].")
        object.__setattr__(self, "blocks", tuple(self.blocks))


class DigitsPrior:
    """`sample` draws tasks from images: (M, H, W), labels: (M,) 0 to 9.

    groups: (d,) int64, the action (block) that uncovers each pixel; every TaskBatch of this prior has these d features.
    """

    def __init__(self, config: DigitsConfig | None = None, *, images: np.ndarray | Tensor, labels: np.ndarray | Tensor):
        self.config = config or DigitsConfig()
        pictures = torch.as_tensor(images)
        if pictures.ndim != 3 or len(pictures) != len(labels):
            raise ConfigError(
                f"Images have shape {tuple(pictures.shape)} and there are {len(labels)} labels; "
                "give (count, height, width) and as many labels."
            )
        # Bytes become 0 to 1; pictures that are floats already are left as they are.
        scale = 1.0 if pictures.is_floating_point() else 255.0
        small = torch.nn.functional.avg_pool2d((pictures.float() / scale).unsqueeze(1), self.config.pool).squeeze(1)
        self._height, self._width = small.shape[1:]
        self._pixels = small.flatten(1)
        self._labels = torch.as_tensor(labels).long()
        self.groups = self._make_groups()

    @property
    def features(self) -> int:
        return len(self.groups)

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int | None = None) -> TaskBatch:
        if features not in (None, self.features):
            raise ConfigError(f"These pictures have {self.features} pixels, not {features}; ask for {self.features}.")
        self._move(generator.device)
        used = self._sample_digits(generator, tasks)
        left = self._sample_images(generator, used, rows)
        if self.config.layout == "single":
            x = self._pixels[left]
            y, n_classes = _which(self._labels[left], used)
        else:
            right = self._sample_images(generator, used, rows)
            x = self._side_by_side(left, right)
            y, n_classes = self._ask(generator, self._labels[left], self._labels[right], used)
        return TaskBatch(
            x=x,
            r=self._sample_recorded(generator, x),
            y=y,
            n_classes=n_classes,
            acquirable=torch.ones(tasks, self.features, dtype=torch.bool, device=x.device),
            categorical=torch.zeros(tasks, self.features, dtype=torch.bool, device=x.device),
        )

    def _move(self, device: torch.device) -> None:
        """The pictures follow the generator once."""
        if self._pixels.device != device:
            self._pixels, self._labels = self._pixels.to(device), self._labels.to(device)
            self.groups = self.groups.to(device)

    def _make_groups(self) -> Tensor:
        down, across = self.config.blocks
        # Integer division maps pixel rows to `down` bands and columns to `across` bands, as equal as can be.
        row = torch.arange(self._height) * down // self._height
        column = torch.arange(self._width) * across // self._width
        single = row.unsqueeze(1) * across + column  # (H, W)
        picture = single if self.config.layout == "single" else torch.cat((single, single + down * across), dim=1)
        return picture.flatten()

    def _sample_digits(self, generator: torch.Generator, tasks: int) -> Tensor:
        """(B, 10) bool: the digits that each task uses."""
        allowed = torch.zeros(10, dtype=torch.bool, device=generator.device)
        allowed[list(self.config.digits)] = True
        return subset(generator, integers(generator, (tasks,), *self.config.used), 10, allowed.expand(tasks, 10))

    def _sample_images(self, generator: torch.Generator, used: Tensor, rows: int) -> Tensor:
        """(B, N) image numbers, none twice within a task."""
        fits = used[:, self._labels]  # (B, M)
        if int(fits.sum(dim=1).min()) < rows:
            raise ConfigError(
                f"A task drew digits with {int(fits.sum(dim=1).min())} images, fewer than {rows} rows; "
                "ask for fewer rows, give more images, or raise DigitsConfig.used."
            )
        # Smallest random keys; images of digits that the task does not use have keys from 1 up and are never taken.
        return (uniform(generator, tuple(fits.shape)) + ~fits).topk(rows, dim=1, largest=False).indices

    def _side_by_side(self, left: Tensor, right: Tensor) -> Tensor:
        B, N = left.shape
        shape = (B, N, self._height, self._width)
        return torch.cat((self._pixels[left].view(shape), self._pixels[right].view(shape)), dim=3).flatten(2)

    def _ask(self, generator: torch.Generator, left: Tensor, right: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
        """left, right: (B, N) digits → y: (B, N) and n_classes: (B,) of one question for each task."""
        (on_left, count), (on_right, _) = _which(left, used), _which(right, used)
        two = torch.full_like(count, 2)
        answers = {
            "left": (on_left, count),
            "right": (on_right, count),
            "larger": ((left > right).long(), two),
            "same_parity": ((left % 2 == right % 2).long(), two),
        }
        chosen = [answers[question] for question in self.config.questions]
        question = choice(generator, len(used), (1.0,) * len(chosen))
        task = torch.arange(len(used), device=used.device)
        return torch.stack([y for y, _ in chosen])[question, task], torch.stack([n for _, n in chosen])[question, task]

    def _sample_recorded(self, generator: torch.Generator, x: Tensor) -> Tensor:
        """Blocks are missing as wholes: mechanisms see a block's mean brightness."""
        blocks = int(self.groups.max()) + 1
        # (d, blocks), divided by a block's size: x @ it is each block's mean brightness, (B, N, blocks).
        member = torch.nn.functional.one_hot(self.groups, blocks).to(x.dtype)  # (d, blocks)
        acquirable = torch.ones(len(x), blocks, dtype=torch.bool, device=x.device)
        r = sample_missingness(generator, x @ (member / member.sum(dim=0)), acquirable, self.config.missingness)
        return r[:, :, self.groups]


def _which(digit: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
    """digit: (B, N), used: (B, 10) → class codes (B, N), numbered among the digits in use, and their count (B,)."""
    # The k-th digit in use gets code k, so codes have no gaps.
    code = used.long().cumsum(dim=1) - 1
    return code.gather(1, digit), used.sum(dim=1)

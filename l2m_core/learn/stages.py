"""What each step of pretraining draws: tasks, in stages of one shape each, and what is known of their queries.

Everything follows from (seed, step), so that a resumed job draws what an unbroken one would have drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from l2m_core.errors import ConfigError
from l2m_core.learn.draw_ahead import DrawAhead
from l2m_core.settings import check_least, check_most
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.best_answers import with_answers
from l2m_core.tasks.class_order import coded_by_frequency
from l2m_core.tasks.draws import coin, uniform

POOL_STEPS = 4  # consecutive steps that share one draw of the prior: large draws cost less per task


@dataclass(frozen=True)
class Stage:
    """A stretch of steps with one way of drawing shapes."""

    steps: int
    """Steps of the stage."""
    tasks: int = 8
    """Tasks of a step at the reference size; smaller shapes get more, larger fewer (see `cells`)."""
    cells: int = 0
    """When positive, tasks per step = cells / (rows × features), at least 1: every step costs about the same."""
    rows: tuple[int, ...] = (224,)
    """Rows of a task, context and queries together; one is drawn for each pool of steps."""
    features: tuple[int, ...] = (4, 8, 12, 16)
    """Numbers of features of a task. Keep them few: each new shape costs compiled kernels, and memory on a CPU."""
    context: tuple[float, ...] = (0.25, 0.5, 0.75)
    """Shares of the rows that are context; one is drawn for each pool of steps."""
    known: tuple[float, float] = (0.0, 1.0)
    """Range of the share of features known of a query."""
    baseline_known: float = 0.5
    """Share of tasks whose baseline features are always known."""
    continuous: float = 0.25
    """Share of pools with a continuous outcome."""
    lr: tuple[float, float] = (1.0, 1.0)
    """Learning rate at the start and end of the stage, as a share of the peak (cosine between)."""

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise ConfigError(f"stage.steps is {self.steps}; it must not be negative.")
        if min(self.rows, default=0) < 8 or min(self.features, default=0) < 1:
            raise ConfigError("stage.rows must be at least 8 and stage.features at least 1.")
        if not self.context or not all(0 < share < 1 for share in self.context):
            raise ConfigError(f"stage.context is {self.context}; shares must lie strictly between 0 and 1.")
        low, high = self.known
        if not 0 <= low <= high <= 1:
            raise ConfigError(f"stage.known is {self.known}; it must be two shares from 0 to 1, the lower one first.")
        check_least(self, "stage", tasks=1, cells=0, baseline_known=0.0, continuous=0.0)
        check_most(self, "stage", baseline_known=1.0, continuous=1.0)

    def tasks_for(self, rows: int, features: int) -> int:
        return max(1, self.cells // (rows * (features + 1))) if self.cells else self.tasks


@dataclass(frozen=True)
class Episode:
    """What one step trains on: tasks, how many rows of each are context, and what is known of each query.

    a: (B, n, d) bool, a part of what was recorded; seed: of whatever a loss draws by itself;
    share: (first, stride, all tasks) of the whole batch's tasks that these are, when several processes share it.
    """

    tasks: TaskBatch
    context: int
    a: Tensor
    seed: int = 0
    share: tuple[int, int, int] | None = None

    def uniform(self, *shape: int, stream: int = 0) -> Tensor:
        """(B, *shape) uniform draws that follow from the seed, the same for a task however the batch is shared."""
        # Draws are made for the whole batch and then shared out: however many processes there are, a task meets the
        # same numbers.
        first, stride, whole = self.share or (0, 1, len(self.a))
        generator = seeded(self.a.device, self.seed, stream)
        return torch.rand(whole, *shape, generator=generator, device=self.a.device)[first::stride]


def stage_at(stages: tuple[Stage, ...], step: int) -> tuple[int, int]:
    """The number of a step's stage, and the step's index within it; the last stage never ends."""
    for number, stage in enumerate(stages[:-1]):
        if step < stage.steps:
            return number, step
        # Steps are counted from the beginning of the job, stages one after the other.
        step -= stage.steps
    return len(stages) - 1, step


def seeded(device: torch.device | str, *numbers: int) -> torch.Generator:
    """A generator that follows from a few whole numbers."""
    # A splitmix-like hash: neighbouring seeds and steps give generators that have nothing in common.
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = (state ^ (number + 0x7F4A7C15)) * 0xBF58476D1CE4E5B9 % 2**64
        state ^= state >> 31
    return torch.Generator(device=device).manual_seed(state % 2**63)


class EpisodeStream:
    """Draws episodes from priors. `priors`: {"classes": …, "continuous": …}, either may be absent.

    ahead: whether the next pool is drawn while this one is trained on; by default on a GPU. Episodes are the same.
    by_frequency: whether classes are coded from the most to the least frequent in the context.
    """

    def __init__(
        self,
        priors: dict,
        stages: tuple[Stage, ...],
        seed: int,
        device: torch.device | str = "cpu",
        ahead: bool | None = None,
        by_frequency: bool = False,
    ):
        self.priors, self.stages, self.seed, self.device = priors, stages, seed, device
        self.by_frequency = by_frequency
        if ahead is None:
            ahead = torch.device(device).type == "cuda"
        self._ahead = DrawAhead(device, _tensors_of) if ahead else None
        self._pool: tuple[tuple[int, int], list[Episode]] | None = None

    def episode(self, step: int) -> Episode:
        number, index = stage_at(self.stages, step)
        # The pool follows from the step alone, so a resumed job draws the same one.
        key = (number, index // POOL_STEPS)
        if self._pool is None or self._pool[0] != key:
            draw = partial(self._draw_pool, *key)
            self._pool = (key, draw() if self._ahead is None else self._ahead.take(key, draw))
            if self._ahead is not None:
                following = self._key_after(*key)
                self._ahead.start(following, partial(self._draw_pool, *following))
        return self._pool[1][index % POOL_STEPS]

    def _key_after(self, number: int, pool: int) -> tuple[int, int]:
        """Of the pool that follows: the next stage's first where this one is over."""
        is_over = (pool + 1) * POOL_STEPS >= self.stages[number].steps
        left = [later for later in range(number + 1, len(self.stages)) if self.stages[later].steps]
        return (left[0], 0) if is_over and left else (number, pool + 1)

    def _draw_pool(self, number: int, pool: int) -> list[Episode]:
        stage, generator = self.stages[number], seeded(self.device, self.seed, number, pool)
        rows = _pick(generator, stage.rows)
        features = _pick(generator, stage.features)
        # At least four rows on either side, or there is nothing to learn from or to be asked about.
        context = max(4, min(rows - 4, round(_pick(generator, stage.context) * rows)))
        wants_continuous = bool(coin(generator, (1,), stage.continuous))
        outcome = "continuous" if wants_continuous and "continuous" in self.priors else "classes"
        outcome = outcome if outcome in self.priors else "continuous"
        tasks = stage.tasks_for(rows, features)
        # One large draw for several steps: a prior's cost is mostly per call.
        batch = self.priors[outcome].sample(generator, tasks * POOL_STEPS, rows, features)
        batch = coded_by_frequency(batch, context) if self.by_frequency else batch
        a = draw_known(generator, batch, context, stage)
        batch = with_answers(batch, context, a, generator)
        parts = [slice(i * tasks, (i + 1) * tasks) for i in range(POOL_STEPS)]
        seeds = torch.randint(2**31, (POOL_STEPS,), generator=generator, device=generator.device).tolist()
        return [
            Episode(batch.map(lambda t, part=part: t[part]), context, a[part], seed)
            for part, seed in zip(parts, seeds, strict=True)
        ]


def _tensors_of(pool: list[Episode]) -> list[Tensor]:
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    for episode in pool:
        episode.tasks.map(note)
        found.append(episode.a)
    return found


# -- random orders of acquisition, on the episode's device and from its streams; of a cohort's patients: l2m_core.acquire


def draw_known(generator: torch.Generator, batch: TaskBatch, context: int, stage: Stage) -> Tensor:
    """(B, n, d): a random number of each query's recorded features, in random order."""
    r = batch.r[:, context:]
    share = uniform(generator, (*r.shape[:2], 1), *stage.known)
    order = uniform(generator, r.shape)
    keeps_baseline = coin(generator, (len(r), 1, 1), stage.baseline_known)
    return reveal_share(order, share, r, keeps_baseline & ~batch.acquirable[:, None])


def random_orders(episode: Episode, count: int) -> Tensor:
    """(B, count, n, d): what is known of each query at `count` points of random orders of its recorded features."""
    r = episode.tasks.r[:, None, episode.context :]
    n, d = r.shape[-2:]
    order = episode.uniform(count, n, d)
    # Stratified: way i falls into the i-th of `count` equal parts of its order, so every query is seen nearly empty
    # and nearly complete at each step. The study draws one state per step; several per query cost little, as all read
    # the same keys.
    share = (torch.arange(count, device=r.device)[:, None, None] + episode.uniform(count, n, 1, stream=1)) / count
    # Half of the tasks have their baseline features known from the start, as at the bedside; the other half teach the
    # model to do without.
    keeps_baseline = episode.uniform(1, 1, 1, stream=2) < 0.5
    return reveal_share(order, share, r, keeps_baseline & ~episode.tasks.acquirable[:, None, None])


def random_unknown(unknown: Tensor, count: int, episode: Episode, stream: int = 0) -> Tensor:
    """(B, n, count) indices of different unknown features, -1 where a query has fewer."""
    # A random key for each unknown feature and 0 for the others: the largest `count` keys are a draw without
    # replacement.
    key = episode.uniform(*unknown.shape[1:], stream=stream) * unknown
    best = key.topk(min(count, unknown.shape[-1]), dim=-1)
    return torch.where(best.values > 0, best.indices, -1)


def reveal_share(order: Tensor, share: Tensor, r: Tensor, always: Tensor) -> Tensor:
    """(…, d) bool: the first `share` of the recorded features r by their random keys `order`, and those in `always`.

    All shares in 0 … 1 being alike, 0 … all recorded features are known with equal chance: the study draws S_t uniformly
    over the steps of an acquisition.
    """
    # Ranks among features; keys of what was not recorded are from 1 up, so it ranks last.
    rank = (order + (~r)).argsort(-1).argsort(-1)
    count = (share * (r.sum(-1, keepdim=True) + 1)).floor()
    return ((rank < count) | always) & r


def _pick(generator: torch.Generator, options: tuple):
    index = torch.randint(len(options), (1,), generator=generator, device=generator.device)
    return options[int(index)]

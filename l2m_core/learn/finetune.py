"""Fine-tuning on one cohort: at every step its rows are split anew into context and queries.

Some rows are never trained on. They decide when to stop and which weights to keep, the initial ones included.
"""

from __future__ import annotations

import copy
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, ConfigError, type_of
from l2m_core.learn.early_stopping import EarlyStopping
from l2m_core.learn.loop import Loop, LoopConfig
from l2m_core.learn.losses import PredictorLoss, RowsPredictorLoss, query_losses
from l2m_core.learn.precision import FASTER
from l2m_core.learn.processes import take_from_first
from l2m_core.learn.stages import Episode, Stage, draw_known, seeded
from l2m_core.settings import check_least
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.class_order import coded_by_frequency

WAYS_KNOWN = 4  # ways in which each stopping row is known: one would make early stopping a matter of luck


@dataclass(frozen=True)
class FinetuneConfig:
    """How far a model may move towards a cohort."""

    steps: int = 300
    """Most steps."""
    lr: float = 1e-4
    """Learning rate."""
    tasks: int = 4
    """Splits of the cohort per step."""
    rows: int = 512
    """Most rows of a split. The context that the stopping rows are judged with has at most four times as many."""
    context: tuple[float, ...] = (0.5, 0.7, 0.85)
    """Shares of a split's rows that are context."""
    held_out: float = 0.2
    """Share of the cohort's rows that are not trained on and decide when to stop: the stopping rows."""
    evaluate_every: int = 20
    """Steps between evaluations on the stopping rows."""
    patience: int = 4
    """Evaluations without a new lowest loss that end the training."""
    average: float = 0.9
    """Decay of the running average of the weights. The average is what is evaluated and returned."""
    dtype: str = FASTER
    """Arithmetic of the forward and backward pass: "bfloat16", "float32", or by "auto" the faster of them on this machine."""
    threads: int = 1
    """CPU threads. They are set here and never guessed."""

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise ConfigError(f"finetune.held_out is {self.held_out}; it must lie strictly between 0 and 1.")
        check_least(self, "finetune", steps=1, tasks=1, rows=16, evaluate_every=1, patience=1)
        try:
            _ = self.stage, _loop_config(self)
        except ConfigError as error:  # names the settings of those, which have the names of these
            raise ConfigError(re.sub(r"\b(stage|loop)\.", "finetune.", str(error))) from None

    @property
    def stage(self) -> Stage:
        return Stage(steps=self.steps, tasks=self.tasks, context=self.context, lr=(1.0, 0.05))


class CohortEpisodes:
    """Draws splits of a cohort. train, stop: (n,) row numbers; every step follows from (seed, step).

    by_frequency: as of EpisodeStream.
    """

    def __init__(
        self,
        cohort: Cohort,
        config: FinetuneConfig,
        seed: int,
        device: torch.device | str = "cpu",
        by_frequency: bool = False,
    ):
        self.config, self.seed, self.device, self.by_frequency = config, seed, device, by_frequency
        self.x = torch.nan_to_num(torch.tensor(cohort.x), nan=0.0).to(device)
        self.r = torch.tensor(cohort.r).to(device)
        self.y = torch.tensor(cohort.y).to(device)
        self.n_classes = None if cohort.kind == "continuous" else cohort.n_classes
        self.categorical = torch.tensor(cohort.categorical).to(device)
        self.acquirable = torch.tensor(cohort.acquirable).to(device)
        patients = cohort.patients
        self.patient = (
            None if patients is None else torch.tensor(np.unique(patients, return_inverse=True)[1]).to(device)
        )
        self.train, self.stop = split_rows(self.y, config.held_out, seeded(device, seed, -1), self.patient)
        if len(self.train) < 16 or len(self.stop) < 4:
            raise CohortError(f"{len(self.y)} rows are too few to fine-tune on; at least 20 are needed, better 200.")

    def draw(self, step: int) -> Episode:
        generator = seeded(self.device, self.seed, step)
        # A fresh split of the same rows for each task: context and queries change places from step to step.
        index = self.train[self._order(generator)[:, : self.config.rows]]
        share = torch.randint(len(self.config.context), (1,), generator=generator, device=self.device)
        n = index.shape[1]
        return self._episode(generator, index, max(4, min(n - 4, round(self.config.context[int(share)] * n))))

    def _order(self, generator: torch.Generator) -> Tensor:
        """(tasks, n) orders of the training rows. Those of one patient lie side by side: otherwise queries would be of
        patients whose other rows are context, which answer for them."""
        tasks = self.config.tasks
        if self.patient is None:
            return torch.rand(tasks, len(self.train), generator=generator, device=self.device).argsort(1)
        place = torch.rand(tasks, int(self.patient.max()) + 1, generator=generator, device=self.device)
        return place[:, self.patient[self.train]].argsort(dim=1, stable=True)

    def stopping(self) -> Episode:
        """The rows for training as context, and each stopping row as several queries that differ in what is known."""
        generator = seeded(self.device, self.seed, -2)
        context = self.train[: 4 * self.config.rows]
        # (1, context + ways · stop) rows of one task; the mask of what is known differs between the repeats.
        index = torch.cat([context, self.stop.repeat(WAYS_KNOWN)])[None]
        return self._episode(generator, index, len(context))

    def _episode(self, generator: torch.Generator, index: Tensor, context: int) -> Episode:
        """index: (B, N) rows."""
        tasks = len(index)
        classes = None if self.n_classes is None else torch.full((tasks,), self.n_classes, device=self.device)
        acquirable, categorical = (each.expand(tasks, -1) for each in (self.acquirable, self.categorical))
        batch = TaskBatch(self.x[index], self.r[index], self.y[index], classes, acquirable, categorical)
        batch = coded_by_frequency(batch, context) if self.by_frequency else batch
        return Episode(batch, context, draw_known(generator, batch, context, self.config.stage))


def finetune(
    model: nn.Module,
    cohort: Cohort,
    config: FinetuneConfig | None = None,
    generator: torch.Generator | None = None,
    *,
    folder: Path | None = None,
    resume: bool = False,
    quiet: bool = True,
    by_frequency: bool = False,
) -> nn.Module:
    """A copy of the model with the weights that predict the stopping rows best. The model itself does not change.

    generator: decides the split and all draws; folder: where checkpoints and a log are kept, to resume from;
    by_frequency: whether the model is told of classes from the most to the least frequent, as the general one is
    (`AnswerSettings.class_order`).
    """
    told = {"folder": folder, "resume": resume, "quiet": quiet, "by_frequency": by_frequency}
    return start_finetuning(model, cohort, config, generator, **told)[0]


def start_finetuning(
    model, cohort, config=None, generator=None, *, folder=None, resume=False, quiet=True, by_frequency=False
):
    """As `finetune`; returns the model and the loss of the stopping rows (before, after)."""
    if not isinstance(model, nn.Module):
        raise ConfigError(
            f"The model is {type_of(model)}, no module that can be fine-tuned. Of a loaded model give load(…).release.module."
        )
    if not isinstance(cohort, Cohort):
        raise CohortError(
            f"The cohort is {type_of(cohort)}. Make a Cohort of it, as by Cohort.from_frame(frame, outcome)."
        )
    config = config or FinetuneConfig()
    model = copy.deepcopy(model).requires_grad_(True).float()
    device = next(model.parameters()).device
    seed = int(torch.randint(2**31, (1,), generator=generator or torch.Generator().manual_seed(0)))
    episodes = CohortEpisodes(cohort, config, seed, device, by_frequency)
    # Drawn once: every evaluation answers the same questions.
    judged = episodes.stopping()
    loss = RowsPredictorLoss(model) if model.config.encoder == "rows" else PredictorLoss(model)
    stopping = EarlyStopping("loss", config.patience)
    loop = Loop(
        loss,
        episodes.draw,
        (config.stage,),
        _loop_config(config),
        folder,
        facts={
            "model": asdict(model.config),
            "job": {"seed": seed, "cohort": cohort.content_hash, "finetune.held_out": config.held_out},
        },
        evaluate=lambda module: {"loss": _loss_of(module, judged)},
        stopping=stopping,
        quiet=quiet,
    )
    # The weights before the first step are a candidate too: a cohort that teaches nothing leaves the model as it was.
    before = _loss_of(model, judged)
    if resume:
        loop.resume()
    loop.run()
    if loop.rank == 0:  # of several processes only the first looks at the stopping rows
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(stopping.best[name])
    take_from_first(model.parameters())
    return model.eval().requires_grad_(False), (before, stopping.value)


def split_rows(
    y: Tensor, share: float, generator: torch.Generator, patient: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Row numbers for training and for stopping, both in random order, alike in their outcomes.

    patient: (n,) whose each row is, from 0; a patient's rows stay together.
    """
    if patient is not None:
        outcome = outcome_of_patients(y.float(), patient)
        trained, stopped = (rows_of_patients(part, patient) for part in split_rows(outcome, share, generator))
        return trained, stopped
    shuffled = torch.rand(len(y), generator=generator, device=y.device).argsort()
    by_outcome = shuffled[y[shuffled].argsort(stable=True)]
    # Every k-th row by outcome, from a random first one.
    position = torch.arange(len(y), device=y.device) + torch.rand(1, generator=generator, device=y.device) / share
    # floor(k · share) grows at every (1 / share)-th row in the order of outcomes: the stopping rows have the same mix
    # of outcomes as the rest, with no class lost.
    is_stop = ((position * share).floor() - ((position - 1) * share).floor()) > 0
    parts = (by_outcome[~is_stop], by_outcome[is_stop])
    train, stop = (part[torch.rand(len(part), generator=generator, device=y.device).argsort()] for part in parts)
    return train, stop


def outcome_of_patients(y: Tensor, patient: Tensor) -> Tensor:
    """(P,) the smallest outcome of each patient. y: (n,) floating; patient: (n,) whose each row is, from 0."""
    return torch.full((int(patient.max()) + 1,), torch.inf, dtype=y.dtype, device=y.device).scatter_reduce(
        0, patient, y, "amin"
    )


def rows_of_patients(patients: Tensor, patient: Tensor) -> Tensor:
    """(m,) numbers of these patients' rows, in the order of the patients. patient: (n,) whose each row is, from 0."""
    place = torch.full((int(patient.max()) + 1,), -1, device=patient.device)
    place[patients] = torch.arange(len(patients), device=patient.device)
    rows = (place[patient] >= 0).nonzero().squeeze(1)
    return rows[place[patient[rows]].argsort(stable=True)]


@torch.no_grad()
def _loss_of(model: nn.Module, episode: Episode) -> float:
    return float(query_losses(model, episode, rank=True)[0].mean())


def _loop_config(config: FinetuneConfig) -> LoopConfig:
    return LoopConfig(
        lr=config.lr,
        weight_decay=0.0,
        warmup=min(20, config.steps),
        average=config.average,
        dtype=config.dtype,
        evaluate_every=config.evaluate_every,
        threads=config.threads,
    )

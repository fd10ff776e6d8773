"""`python -m train finetune`: fine-tunes a model on one cohort, and writes a model folder that `load` reads."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch

from l2m_core.answering.release import save_model
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.cohort import Cohort
from l2m_core.errors import TrainingError
from l2m_core.learn.finetune import FinetuneConfig, start_finetuning
from l2m_core.learn.inherited_settings import inherited
from l2m_core.learn.job_memory import check_memory
from l2m_core.learn.processes import rank_and_world_size
from l2m_core.learn.stages import Stage
from l2m_core.model.interface import ModelConfig
from l2m_core.settings import to_plain
from l2m_core.tables.reading_options import ReadingOptions
from train.initial_model import load_initial_model


@dataclass(frozen=True)
class FinetuneJob:
    """Which model, which cohort, and how far."""

    folder: str
    """Where checkpoints and the log are written, and the fine-tuned model in `model`."""
    cohort: str
    """A CSV or Parquet file, or an Excel workbook."""
    outcome: str = ""
    """The column to predict; not needed when the schema names it."""
    baseline: tuple[str, ...] = ()
    """Columns that are known from the start."""
    schema: str = ""
    """A YAML file with the cohort's schema."""
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    """How the cohort's file is read, where it does not tell by itself."""
    init: str = "general"
    """The model to begin with: a released one (name or folder), a job's folder, or a checkpoint."""
    finetune: FinetuneConfig = field(default_factory=FinetuneConfig)
    """How far the model may move."""
    seed: int = 0
    """Seed of the splits of the cohort."""
    device: str = "cpu"
    """"cpu"; with a GPU "cuda", "cuda:1", or "auto", which takes one that has room. Where it is not set: as L2M_DEVICE says."""

    def __post_init__(self) -> None:
        # Before the cohort is read: of one feature at least. Attention's scores grow with the cohort's own rows, which
        # may be far fewer than `rows`.
        stage = Stage(steps=1, tasks=self.finetune.tasks, rows=(self.finetune.rows,), features=(1,))
        check_memory((stage,), ModelConfig(), "cuda")


def run(job: FinetuneJob, resume: bool) -> None:
    torch.set_num_threads(job.finetune.threads)
    model = load_initial_model(job.init, job.device)
    cohort = Cohort.from_file(
        job.cohort, job.outcome or None, baseline=job.baseline, schema=job.schema or None, **job.reading.keywords()
    )
    for note in cohort.remarks:
        print(f"note: {note}", file=sys.stderr)
    generator = torch.Generator().manual_seed(job.seed)
    inference = inherited(job.init)
    tuned, (before, after) = start_finetuning(
        model,
        cohort,
        job.finetune,
        generator,
        folder=Path(job.folder),
        resume=resume,
        quiet=False,
        by_frequency=inference.by_frequency,
    )
    if rank_and_world_size()[0] > 0:
        return
    trained = TrainedRange(len(cohort.names), len(cohort.y), max(2, cohort.n_classes), (cohort.kind,))
    target = Path(job.folder) / "model"
    facts = {"job": to_plain(job), "loss": [before, after], "cohort_hash": cohort.content_hash}
    try:
        save_model(target, tuned, tuned.config, trained, inference, facts)
    except OSError as error:
        raise TrainingError(
            f"The fine-tuned model could not be written to {target} ({error}). What it learned is kept in checkpoints: "
            "free some space, then resume the job (on the command line with --resume)."
        ) from error
    print(
        f"{target}: log loss of the rows that decided when to stop, with plain answers: {before:.4f} before, {after:.4f} after"
    )

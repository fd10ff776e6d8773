"""`python -m train release`: turns a job's newest checkpoint into a model folder that `l2m_core.load` reads."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from l2m_core.answering.release import FACTS, save_model
from l2m_core.answering.settings import FREQUENCY, AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import load_checkpoint, load_model, write_text
from l2m_core.model.by_outcome import join, networks
from l2m_core.model.interface import ModelConfig
from l2m_core.settings import check_least, check_most
from train import difference
from train.initial_model import load_initial_model, refuse_another_shape


@dataclass(frozen=True)
class ReleaseJob:
    """Which checkpoint becomes which model."""

    run: str
    """Folder of the job whose newest checkpoint is released, with the running average of its weights; or of weights that are
    kept as their difference from a released model, whose job is not known."""
    folder: str
    """Where the model folder is written."""
    replace: bool = False
    """Let it take the place of a model that is in the folder. Its learning curves go; its card stays, to be written anew."""
    trained: TrainedRange = field(default_factory=TrainedRange)
    """The cohorts it was trained for. Cohorts beyond them are answered with a warning."""
    inference: AnswerSettings = field(default_factory=AnswerSettings)
    """How its answers are computed."""
    standardise: bool = False
    """Bring columns to the context's mean and spread (rows), also where training had no need to, its columns being so already."""
    average_with: str = ""
    """A released model, or a job's folder, of the same shape: each weight becomes the mean of its weight and the run's. The mean
    of what a leg began with and of what it came to may keep what the one knew, and have most of what the other learnt."""
    own_share: float = 0.75
    """Share of the run's weights in that mean."""
    for_classes: str = ""
    """A released model, or a job's folder, of the same shape: it answers for outcomes with classes, and the run's own weights for
    continuous ones."""
    curves: tuple[str, ...] = ()
    """Folders of the trainings before this one. Their learning curves are kept beside the card, this one's last."""

    def __post_init__(self) -> None:
        check_least(self, "release", own_share=0)
        check_most(self, "release", own_share=1)


def without_places(plain: dict[str, Any]) -> dict[str, Any]:
    """A training job's settings as a release tells them: of data, the file's name and not the machine's folders."""
    prior = plain.get("prior", {})
    data = prior.get("data") or {}
    if not data.get("path"):
        return plain
    return {**plain, "prior": {**prior, "data": {**data, "path": Path(data["path"]).name}}}


def run(job: ReleaseJob) -> None:
    folder = Path(job.folder)
    if (folder / FACTS).is_file() and not job.replace:
        raise ConfigError(
            f"{folder} holds a model. Name another folder, or say replace=true if this one is to take its place."
        )
    module, training = trained_weights(job.run)
    if training.get("job", {}).get("classes_by_frequency") and not job.inference.by_frequency:
        raise ConfigError(
            f"{job.run} was trained with classes_by_frequency, so inference.class_order must be {FREQUENCY}."
        )
    if job.average_with:
        average_weights(module, load_initial_model(job.average_with, setting="average_with"), job.own_share)
    if job.for_classes:
        for_classes = networks(load_initial_model(job.for_classes, setting="for_classes"))[0]
        refuse_another_shape("for_classes", networks(module)[-1], for_classes)
        module = join(for_classes, module)
    trained: ModelConfig = module.config  # type: ignore[assignment]
    config = replace(trained, standardise=trained.standardise or job.standardise)
    if job.average_with:
        training |= {"averaged_with": job.average_with, "own_share": job.own_share}
    if job.for_classes:
        training |= {"for_classes": job.for_classes}
    save_model(folder, module, config, job.trained, job.inference, training)
    for curve in folder.glob("curve-*.jsonl"):  # of the model before
        curve.unlink()
    for number, leg in enumerate((*job.curves, job.run), start=1):
        log = Path(leg) / "log.jsonl"
        if log.is_file():
            write_text(folder / f"curve-{number}-{Path(leg).name}.jsonl", log.read_text())
        elif leg in job.curves:
            print(f"{log} is not there: the model has no learning curve of that training.", file=sys.stderr)
    print(f"{folder}: {sum(p.numel() for p in module.parameters()) / 1e6:.2f} M parameters of {job.run}")


def trained_weights(run: str) -> tuple[nn.Module, dict[str, Any]]:
    """What is to be released, and how it was trained."""
    if (Path(run) / difference.FACTS).is_file():
        return load_initial_model(run), {"kept_in": run}
    path, facts = load_checkpoint(Path(run) / "checkpoints")
    return load_model(path, facts), {
        "job": without_places(facts["job"]),
        "steps": facts["step"],
        "tasks_seen": facts["tasks_seen"],
        "seconds": round(facts["seconds"], 1),
        "skipped_steps": facts["skipped"],
    }


@torch.no_grad()
def average_weights(module: nn.Module, other: nn.Module, own_share: float) -> None:
    """Changes `module` in place. What is no floating-point number stays its own."""
    refuse_another_shape("average_with", module, other)
    own, others = module.state_dict(), other.state_dict()
    for name, value in own.items():
        if value.is_floating_point():
            value.mul_(own_share).add_(others[name], alpha=1 - own_share)

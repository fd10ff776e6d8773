"""`python -m train release`: turns a job's newest checkpoint into a model folder that `l2m_core.load` reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from l2m_core.answering.release import save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.learn.checkpoints import load_checkpoint, load_model, write_text
from l2m_core.model.interface import ModelConfig


@dataclass(frozen=True)
class ReleaseJob:
    """Which checkpoint becomes which model."""

    run: str
    """Folder of the job whose newest checkpoint is released, with the running average of its weights."""
    folder: str = "pretrained/general"
    """Where the model folder is written."""
    trained: TrainedRange = field(default_factory=TrainedRange)
    """The cohorts it was trained for. Cohorts beyond them are answered with a warning."""
    inference: AnswerSettings = field(default_factory=AnswerSettings)
    """How its answers are computed."""
    standardise: bool = False
    """Bring columns to the context's mean and spread (rows), also where training had no need to, its columns being so already."""
    curves: tuple[str, ...] = ()
    """Folders of the trainings before this one. Their learning curves are kept beside the card, this one's last."""


def without_places(plain: dict[str, Any]) -> dict[str, Any]:
    """A training job's settings as a release tells them: of data, the file's name and not the machine's folders."""
    prior = plain.get("prior", {})
    data = prior.get("data") or {}
    if not data.get("path"):
        return plain
    return {**plain, "prior": {**prior, "data": {**data, "path": Path(data["path"]).name}}}


def run(job: ReleaseJob) -> None:
    path, facts = load_checkpoint(Path(job.run) / "checkpoints")
    module = load_model(path, facts)
    trained: ModelConfig = module.config  # type: ignore[assignment]
    config = replace(trained, standardise=trained.standardise or job.standardise)
    folder = Path(job.folder)
    training = {
        "job": without_places(facts["job"]),
        "steps": facts["step"],
        "tasks_seen": facts["tasks_seen"],
        "seconds": round(facts["seconds"], 1),
        "skipped_steps": facts["skipped"],
    }
    save_model(folder, module, config, job.trained, job.inference, training)
    for number, leg in enumerate((*job.curves, job.run), start=1):
        log = Path(leg) / "log.jsonl"
        if log.is_file():
            write_text(folder / f"curve-{number}-{Path(leg).name}.jsonl", log.read_text())
    print(f"{folder}: {sum(p.numel() for p in module.parameters()) / 1e6:.2f} M parameters, step {facts['step']}")

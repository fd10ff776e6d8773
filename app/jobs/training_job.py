"""The training job: writes settings and cohort into the job's folder, runs the trainer there, and registers the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from app.catalogue import Catalogue
from app.jobs import folders, releasing, trainer
from app.jobs.trainer import CONFIG, Checked
from app.jobs.training_run import RUN, has_checkpoint, last_step
from app.jobs.work import Ending, Stopped, Work
from app.store import NotFound
from l2m_core.errors import ConfigError, L2MError

KIND = "train"
FROM_MODEL, FROM_JOB = "model", "job"


def decided(catalogue: Catalogue, owner: str, config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The settings that the page decides: the job's folder, what it begins with, and the cohort it reads."""
    job = config["job"]
    found: dict[str, Any] = {"folder": str(folder / RUN)}
    if config.get("init"):
        found["init"] = str(initial(catalogue, owner, config["init"]))
    elif job != "predictor":
        raise ConfigError("Choose what to start from: a model, or an earlier training job.")
    if job == "finetune":
        if not config.get("cohort"):
            raise ConfigError("Choose the cohort to fine-tune on.")
        catalogue.store.cohorts.get(owner, config["cohort"])
        found |= {"cohort": str(folder / folders.COHORT), "schema": str(folder / folders.SCHEMA)}
    return found


def initial(catalogue: Catalogue, owner: str, chosen: Mapping[str, str]) -> Path:
    """A model by name, or the folder of an earlier job of the same owner."""
    if chosen.get("from") == FROM_JOB:
        catalogue.store.jobs.get(owner, chosen["name"])
        folder = folders.folder_of(catalogue.settings.jobs_dir, chosen["name"]) / RUN
        if not has_checkpoint(folder):
            raise ConfigError("The job to start from has written no checkpoint yet.")
        return folder
    known = catalogue.model_names(owner)
    if chosen.get("name") not in known:
        raise NotFound("There is no such model any more. Choose another one.")
    return known[chosen["name"]]


def run(work: Work) -> Ending:
    config, catalogue, owner = work.config, work.catalogue, work.job.owner
    settings = trainer.read_settings(config["job"], config["yaml"])
    settings = {**settings, **decided(catalogue, owner, config, work.folder)}
    checked = Checked(config["checked"]["settings"], tuple(config["checked"]["outcomes"]))
    path = work.folder / CONFIG
    path.write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), encoding="utf-8")
    going_on = has_checkpoint(work.folder / RUN)
    try:
        if config["job"] == "finetune":
            _lay_out(work, config["cohort"])
        arguments = [
            config["job"],
            "--config",
            str(path),
            *threads(config["job"], checked, catalogue.settings.job_threads),
        ]
        status = trainer.run(work, [*arguments, *(["--resume"] if going_on else [])], lambda: progress(work, checked))
    finally:
        folders.delete(work.folder, folders.WHILE_IT_RUNS)  # a patient's data stay where they are looked after
    step = last_step(work.folder / RUN)
    if work.stop_asked.is_set() and step < checked.steps:
        if not has_checkpoint(work.folder / RUN):
            raise Stopped
        return Ending("cancelled", f"Stopped at step {step:,} of {checked.steps:,}; a checkpoint is written.")
    if status == trainer.REFUSED:
        raise ConfigError(folders.last_words(work.folder) or "The trainer refused these settings.")
    if status != 0:
        raise L2MError(
            "The trainer ended before its time, most often for want of memory: choose a smaller model, fewer tasks of a "
            "step or fewer rows. What it wrote before is kept, and the job can be resumed."
        )
    released = releasing.release(work, work.job, checked, config["name"])
    return Ending("done", f"Model '{released.name}' can be chosen now.", {"fingerprint": released.fingerprint})


def threads(job: str, checked: Checked, granted: int) -> list[str]:
    """No job computes with more threads than the installation grants."""
    group = "finetune" if job == "finetune" else "loop"
    return [f"{group}.threads={min(granted, int(checked.settings[group]['threads']))}"]


def progress(work: Work, checked: Checked) -> tuple[float, str]:
    step = last_step(work.folder / RUN)
    return min(1.0, step / max(1, checked.steps)), f"Step {step:,} of {checked.steps:,}."


def _lay_out(work: Work, cohort_id: str) -> None:
    stored = work.catalogue.store.cohorts.get(work.job.owner, cohort_id)
    cohort = work.catalogue.cohort(work.job.owner, stored)
    cohort.frame().to_parquet(work.folder / folders.COHORT, index=False)
    (work.folder / folders.SCHEMA).write_text(cohort.schema.to_yaml(), encoding="utf-8")

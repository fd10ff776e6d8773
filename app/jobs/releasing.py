"""A trained checkpoint becomes a model folder with a card, and a name that can be chosen."""

from __future__ import annotations

import re
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from app.jobs import folders, trainer
from app.jobs.trainer import Checked
from app.jobs.training_run import RUN, last_step, read_log
from app.jobs.work import Ending, Work
from app.store import Job, StoredModel
from l2m_core.errors import ConfigError, L2MError
from l2m_core.learn.checkpoints import write_text
from l2m_core.learn.inherited_settings import inherited
from l2m_core.memory import load

KIND = "release"
LONGEST_NAME = 60
_NAME = re.compile(rf"\w[\w .-]{{0,{LONGEST_NAME - 1}}}")


def run(work: Work) -> Ending:
    """The release job: makes a model of what a stopped or failed training job has written so far."""
    of = work.catalogue.store.jobs.get(work.job.owner, work.config["of"])
    checked = Checked(of.config["checked"]["settings"], tuple(of.config["checked"]["outcomes"]))
    released = release(work, of, checked, work.config["name"])
    return Ending("done", f"Model '{released.name}' can be chosen now.", {"fingerprint": released.fingerprint})


def check_name(name: str, known: dict[str, Path]) -> str:
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"Give the model a name of 1 to {LONGEST_NAME} letters, digits, blanks, dots, dashes or underscores."
        )
    if name in known:
        raise ConfigError(f"There is a model '{name}' already. Choose another name.")
    return name


def release(work: Work, of: Job, checked: Checked, name: str) -> StoredModel:
    """of: the training job whose newest checkpoint is taken."""
    settings, owner = work.catalogue.settings, work.job.owner
    source = folders.folder_of(settings.jobs_dir, of.id) / RUN
    target = settings.models_dir / work.job.id
    tuned = source / "model"
    if tuned.is_dir():  # fine-tuning writes a model by itself
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(tuned, target)
    else:
        _write(work, source, target, checked)
    card = card_of(of, checked, name, source)
    write_text(target / "card.md", card)
    model = load(str(target))
    shown = unique(name, {n: f for n, f in work.catalogue.model_names(owner).items() if f != target})
    return work.catalogue.store.models.register(owner, shown, model.fingerprint, str(target), card)


def _write(work: Work, source: Path, target: Path, checked: Checked) -> None:
    config = work.folder / "release.yaml"
    plain = {
        "run": str(source),
        "folder": str(target),
        "replace": True,  # what a job that was stopped here may have left
        "trained": trained_range(checked),
        "inference": asdict(inherited(source)),
    }
    config.write_text(yaml.safe_dump(plain), encoding="utf-8")
    status = trainer.run(work, ["release", "--config", str(config)], lambda: (work.progress, "Writing the model."))
    if status != 0:
        raise L2MError(folders.last_words(work.folder) or "The checkpoint could not be made into a model.")


def trained_range(checked: Checked) -> dict[str, Any]:
    """The range of tasks that the stages covered. The app warns beyond it."""
    stages = checked.settings["stages"]
    model = checked.settings.get("model") or {}
    classes = int(checked.settings["prior"]["settings"].get("max_classes") or model.get("max_classes") or 10)
    outcomes = ["binary", *(["multiclass"] if classes > 2 else [])] if "classes" in checked.outcomes else []
    return {
        "features": max(max(stage["features"]) for stage in stages),
        "context_rows": int(max(max(stage["rows"]) * max(stage["context"]) for stage in stages)),
        "classes": classes,
        "outcomes": [*outcomes, *(["continuous"] if "continuous" in checked.outcomes else [])],
    }


def unique(name: str, known: dict[str, Path]) -> str:
    """A name that became taken while the job ran gets a number."""
    number, candidate = 1, name
    while candidate in known:
        number += 1
        candidate = f"{name} {number}"
    return candidate


CAUTION = {
    "predictor": "Its heads that rank tests were **not trained**: tests are ordered by trying values of like rows, and the "
    "gains shown in nats mean nothing yet. Train a `gain` job on it before you use its suggestions.",
    "gain": "Its gain head was trained here, on drawn tasks.",
    "policy": "Its policy head was trained here, on drawn tasks.",
    "finetune": "It was fitted to one cohort, and may be worse than before on every other. Its gain head was trained before "
    "the predictions moved.",
}


def card_of(of: Job, checked: Checked, name: str, source: Path) -> str:
    held = [line for line in read_log(source) if any(key.startswith("held_out/") for key in line)]
    figures = [
        f"| {key.removeprefix('held_out/')} | {value:.4f} |"
        for key, value in (held[-1] if held else {}).items()
        if key.startswith("held_out/")
    ]
    started = of.config.get("init") or {}
    what = {"model": f"model `{started.get('name')}`", "job": "an earlier training job"}.get(
        started.get("from", ""), "fresh weights"
    )
    caution = (
        CAUTION[of.config["job"]]
        if of.config["job"] != "predictor" or not started
        else ("Its predictor was trained on; the heads that rank tests are those it began with.")
    )
    return "\n".join(
        [
            f"# {name}",
            "",
            f"Trained on this installation, {datetime.now(UTC):%d %B %Y}, by a `{of.config['job']}` job that began with "
            f"{what}: {last_step(source):,} of {checked.steps:,} steps.",
            "",
            f"**Nobody has evaluated it.** {caution} Gather evidence on your own cohort before you rely on it.",
            "",
            *(["| held-out loss | nats |", "| --- | --- |", *figures, ""] if figures else []),
            "```",
            of.config["yaml"].replace("```", "").strip(),
            "```",
            "",
        ]
    )

"""How the answers of a model that was trained on are to be read: as those of what it began with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from l2m_core.answering.release import FACTS, load_release
from l2m_core.answering.settings import AnswerSettings
from l2m_core.errors import ModelFileError
from l2m_core.learn.checkpoints import load_checkpoint
from l2m_core.paths import model_folders

STATE = "state.json"
OF_GAIN_JOBS = "reveals"  # a setting that only those have that teach the gain head


def inherited(init: str | Path, seen: frozenset[Path] = frozenset()) -> AnswerSettings:
    """init: a released model (name or folder), a job's folder, or a checkpoint. Plain where what it began with is gone, or
    is itself: a job may go on in the folder that it begins with. seen: where the way led here from."""
    folder = Path(init)
    if str(init) in model_folders() or (folder / FACTS).is_file():
        return load_release(init).inference
    place = folder.resolve()
    facts = None if place in seen else _facts(folder)
    return AnswerSettings() if facts is None else _of_job(facts["job"], seen | {place})


def _facts(folder: Path) -> dict[str, Any] | None:
    if (folder / STATE).is_file():
        return dict(json.loads((folder / STATE).read_text()))
    try:
        return load_checkpoint(folder / "checkpoints")[1]
    except ModelFileError:
        return None


def _of_job(job: Mapping[str, Any], seen: frozenset[Path]) -> AnswerSettings:
    """Of fresh weights nothing is known to help, and their gains mean nothing until a job has taught them."""
    found = inherited(job["init"], seen) if job.get("init") else AnswerSettings(policy="monte carlo")
    return replace(found, policy="gain") if OF_GAIN_JOBS in job else found

"""The answer settings that a trained model inherits: those of the model that its training began with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from l2m_core.answering.release import FACTS, load_release
from l2m_core.answering.settings import AnswerSettings
from l2m_core.errors import ModelFileError
from l2m_core.learn.checkpoints import find_checkpoint
from l2m_core.paths import is_released

OF_GAIN_JOBS = "reveals"  # a setting that only those have that teach the gain head
DIFFERENCE = (
    "difference.json"  # of weights that are kept as their difference from a released model: which one that is, by BASE
)
BASE = "base"


def inherited(init: str | Path, seen: frozenset[Path] = frozenset()) -> AnswerSettings:
    """The settings of `init`: a released model (name or folder), a job's folder, a checkpoint, or weights that are kept
    as their difference from a released model.

    They are the defaults where that is gone, or where it leads back to itself (a job may continue in the folder that it
    began with). seen: folders that led here.
    """
    folder = Path(init)
    if is_released(str(init)) or (folder / FACTS).is_file():
        return load_release(init, "cpu").inference
    if (folder / DIFFERENCE).is_file():
        return inherited(json.loads((folder / DIFFERENCE).read_text())[BASE], seen)
    path = folder.resolve()
    facts = None if path in seen else _facts(folder)
    return AnswerSettings() if facts is None else _of_job(facts["job"], seen | {path})


def _facts(folder: Path) -> dict[str, Any] | None:
    try:
        found = find_checkpoint(folder)
    except ModelFileError:
        return None
    return None if found is None else found[1]


def _of_job(job: Mapping[str, Any], seen: frozenset[Path]) -> AnswerSettings:
    """Of fresh weights nothing is known to help, and their gains mean nothing until a job has taught them."""
    found = (
        inherited(job["init"], seen) if job.get("init") else AnswerSettings(policy="monte carlo", row_order="content")
    )
    return replace(found, policy="gain") if OF_GAIN_JOBS in job else found

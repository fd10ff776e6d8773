"""The folder of a training run, inside its job's folder: checkpoints, and a log with one entry for each logged step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RUN = "run"  # the trainer's folder within the job's


def has_checkpoint(run: Path) -> bool:
    return any((run / "checkpoints").glob("step-*"))


def last_step(run: Path) -> int:
    """By the log, and by the checkpoint, which may be newer."""
    saved = [int(path.name.removeprefix("step-")) for path in (run / "checkpoints").glob("step-*")]
    logged = [int(line["step"]) for line in read_log(run)[-1:]]
    return max([0, *saved, *logged])


def read_log(run: Path) -> list[dict[str, Any]]:
    """The entries of the trainer's log. A line that is still being written is passed over."""
    try:
        lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("step"), int):
            found.append(entry)
    return found

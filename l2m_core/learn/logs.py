"""The log of a training: JSON lines, and TensorBoard scalars where tensorboard is installed."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from l2m_core.learn.checkpoints import write_text

NAME = "log.jsonl"


class TrainingLog:
    """Appends one line per `write`. Plain numbers only: nothing of a person's data gets here.

    after: the step that the job goes on from, 0 where it begins. What a run that was killed wrote beyond it is forgotten, since
    those steps are made again.
    """

    def __init__(self, folder: Path, after: int = 0):
        self.path = folder / NAME
        _drop_lines_after(self.path, after)
        self._board = _open_board(folder / "tensorboard", after)

    def write(self, step: int, facts: dict[str, float], values: dict[str, float]) -> None:
        """facts: how far the job is; values: what was measured."""
        line = {"step": step, **facts, **values}
        with self.path.open("a") as file:
            file.write(json.dumps({k: round(v, 6) if isinstance(v, float) else v for k, v in line.items()}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)

    def close(self) -> None:
        if self._board is not None:
            with suppress(OSError):  # a full disk: whoever closes has better words for it
                self._board.close()


def _drop_lines_after(path: Path, step: int) -> None:
    """Drops the lines after step `step` (all of them where the job begins), and any line that a crash cut short."""
    if not path.is_file():
        return
    kept = []
    for line in path.read_text().splitlines():
        try:
            if step and json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except (ValueError, KeyError):
            continue
    write_text(path, "".join(kept))


def _open_board(folder: Path, after: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    # Steps from `purge_step` on that an earlier run left there are not shown.
    return SummaryWriter(str(folder), flush_secs=30, purge_step=after + 1 if after else 0)

"""What a job's function is given: the job, its folder, the catalogue, and a way to report progress and learn of a stop."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from app.catalogue import Catalogue
from app.store import Job


class Stopped(Exception):
    """Somebody asked the job to stop."""


@dataclass(frozen=True)
class Ending:
    """How a job ended, in a sentence for the page, and what it found."""

    state: Literal["done", "cancelled"]
    sentence: str
    result: dict[str, Any] = field(default_factory=dict)


class Work:
    """Shared by the worker's main thread, which works, and its second thread, which reports."""

    def __init__(self, job: Job, folder: Path, catalogue: Catalogue) -> None:
        self.job, self.folder, self.catalogue = job, folder, catalogue
        self.stop_asked = threading.Event()
        self.progress = job.progress if job.attempts > 1 else 0.0
        self.sentence = ""

    @property
    def config(self) -> dict[str, Any]:
        return self.job.config

    def say(self, progress: float, sentence: str) -> None:
        """Reports progress, which the page shows within seconds. Raises Stopped when the job should stop."""
        self.progress, self.sentence = min(1.0, max(0.0, progress)), sentence
        if self.stop_asked.is_set():
            raise Stopped

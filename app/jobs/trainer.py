"""Runs the trainer's commands, `python -m train …`, as processes: the app never imports the trainer."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from app.jobs import folders
from app.jobs.runner import worker_environment
from app.jobs.work import Work
from app.settings import AppSettings
from app.store import processes
from l2m_core.errors import ConfigError
from l2m_core.plugins import is_address
from l2m_core.settings import NO_LINES, parse_settings

LARGEST_CONFIG = 100_000  # characters
SECONDS_TO_CHECK = 120
SECONDS_BETWEEN_LOOKS = 0.5
CONFIG, PROCESS = "config.yaml", "trainer.process"
REFUSED = 2  # the trainer's exit status when it said what is wrong

# What this installation decides for each job, and what a page asks for in fields of its own.
DECIDED: dict[str, tuple[str, ...]] = {
    "predictor": ("folder", "init"),
    "gain": ("folder", "init"),
    "policy": ("folder", "init"),
    "finetune": ("folder", "init", "cohort", "outcome", "baseline", "schema", "reading"),
}


@dataclass(frozen=True)
class Checked:
    """Settings as the trainer understood them, defaults included; outcomes: kinds that its prior draws."""

    settings: dict[str, Any]
    outcomes: tuple[str, ...]

    @property
    def steps(self) -> int:
        if "finetune" in self.settings:
            return int(self.settings["finetune"]["steps"])
        planned = sum(int(stage["steps"]) for stage in self.settings["stages"])
        return min(planned, int(self.settings["stop_at"]) or planned)


def home() -> Path:
    """The trainer's folder, found without importing it."""
    spec = importlib.util.find_spec("train")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("The trainer is not installed beside the app, so no training job can be started.")
    return Path(next(iter(spec.submodule_search_locations)))


def read_mapping(text: str) -> dict[str, Any]:
    """What a person wrote as settings of any job; nothing where only comments are."""
    return parse_settings(text, LARGEST_CONFIG)


def read_settings(job: str, text: str) -> dict[str, Any]:
    """The settings that a person wrote, checked to hold none that the page decides."""
    if job not in DECIDED:
        raise ConfigError(f"There is no training job '{job}'. Choose one of {', '.join(DECIDED)}.")
    settings = read_mapping(text)
    if not settings:
        raise ConfigError(NO_LINES)
    for name in settings:
        if name in DECIDED[job]:
            raise ConfigError(f"'{name}' is decided by the fields of this page. Remove it from the settings.")
    if isinstance(settings.get("prior"), dict) and settings["prior"].get("data") is not None:
        # A path would have this installation read a file of its own for whoever writes the settings.
        raise ConfigError("'prior.data' names a file of this computer. Such a training is run from the command line.")
    _refuse_addresses(settings)
    return settings


def _refuse_addresses(value: Any) -> None:
    """`module:object` would have this installation import code for whoever writes the settings."""
    if isinstance(value, str) and is_address(value):
        raise ConfigError(f"'{value}' names code to import. Such a training is run from the command line.")
    if isinstance(value, dict):
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        _refuse_addresses(inner)


def check(job: str, text: str, decided: Mapping[str, Any], settings: AppSettings) -> Checked:
    """Has the trainer check the settings. Its refusal is a ConfigError in its own words."""
    whole = {**read_settings(job, text), **decided}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / CONFIG
        path.write_text(yaml.safe_dump(whole, allow_unicode=True), encoding="utf-8")
        command = [sys.executable, "-P", "-m", "train", job, "--config", str(path), "--check"]
        try:
            answer = subprocess.run(
                command,
                env=worker_environment(settings),
                capture_output=True,
                text=True,
                timeout=SECONDS_TO_CHECK,
                cwd=folder,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise ConfigError("The trainer did not answer in time; this computer is very busy. Try again.") from None
    if answer.returncode:
        raise ConfigError(folders.refusal(answer.stderr) or "The trainer cannot use these settings.")
    told = json.loads(answer.stdout.splitlines()[-1])
    return Checked(told["settings"], tuple(told["outcomes"]))


def run(work: Work, arguments: Sequence[str], progress: Callable[[], tuple[float, str]]) -> int:
    """Runs one command to its end, with its output in the job's log. Returns its exit status. A stop is sent as SIGTERM."""
    _end_left_over(work.folder)
    log = work.folder / folders.LOG
    with log.open("ab") as file:
        command = [
            sys.executable,
            "-P",
            "-m",
            "app.jobs.stop_with_parent",
            str(os.getpid()),
            "-P",
            "-m",
            "train",
            *arguments,
        ]
        child = subprocess.Popen(
            command,
            cwd=work.folder,
            env=worker_environment(work.catalogue.settings),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    (work.folder / PROCESS).write_text(processes.identity(child.pid))
    told = False
    while child.poll() is None:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        work.progress, work.sentence = progress()
        if work.stop_asked.is_set() and not told:
            child.send_signal(signal.SIGTERM)
            told = True
    work.progress, work.sentence = progress()
    (work.folder / PROCESS).unlink(missing_ok=True)
    return child.returncode


def _end_left_over(folder: Path) -> None:
    """Ends a trainer that outlived its worker, where the system did not signal it."""
    path = folder / PROCESS
    if not path.is_file():
        return
    identity = path.read_text()
    if processes.is_alive(identity):
        os.kill(int(identity.rsplit(processes.SEPARATOR, 3)[2]), signal.SIGTERM)
        deadline = time.monotonic() + 60
        while processes.is_alive(identity) and time.monotonic() < deadline:
            time.sleep(SECONDS_BETWEEN_LOOKS)
    path.unlink()

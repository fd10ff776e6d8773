"""`python -m train JOB --config FILE [key=value …] [--resume]`; under `torchrun`, on several processes or GPUs.

And `python -m train evaluate|reproduce|acquire|leg|benchmark|devices|answer_settings|held_out|long_cohorts|bands|
consistency|foreseen|informed_order|earlier_order|members|beside_the_paper|afabench …`, each with its own options
instead of a config.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from l2m_core.answering import devices
from l2m_core.cli import program
from l2m_core.errors import ConfigError, L2MError, tell_warnings_plainly
from l2m_core.learn.processes import joined, leave
from l2m_core.schema import did_you_mean
from l2m_core.settings import build_settings, read_settings, to_plain
from train.hours import for_the_processor

# Each job's module, which holds `run`, and the dataclass of its settings.
JOBS = {
    "predictor": "train.predictor.PredictorJob",
    "policy": "train.policy.PolicyJob",
    "gain": "train.gain.GainJob",
    "finetune": "train.finetune.FinetuneJob",
    "release": "train.release.ReleaseJob",
    "choices": "train.study.choices.ChoicesJob",
}
# Each command's module holds `parse(arguments)` and `main(arguments)`.
COMMANDS = {
    "evaluate": "train.study.evaluate",
    "reproduce": "train.study.reproduce",
    "acquire": "train.acquire",
    "leg": "train.leg",
    "benchmark": "train.study.benchmark",
    "devices": "train.study.devices",
    "answer_settings": "train.study.answer_settings",
    "held_out": "train.study.held_out",
    "long_cohorts": "train.study.long_cohorts",
    "bands": "train.study.bands",
    "consistency": "train.study.consistency",
    "foreseen": "train.study.foreseen",
    "informed_order": "train.study.informed_order",
    "earlier_order": "train.study.earlier_order",
    "members": "train.study.members",
    "beside_the_paper": "train.study.beside_the_paper",
    "afabench": "train.study.afabench",
}

# Commands that keep each finished piece, and find it again.
RESUMABLE = ("evaluate", "reproduce", "acquire", "choices")
INTERRUPTED = {
    True: "Stopped. What is finished is kept: the same command goes on with the rest.",
    False: "Stopped before it was done, and nothing was saved. Checkpoints of earlier runs are whole.",
}

OLD_NAMES = {"care": "answer_settings"}  # of commands


def settings_of(job: str) -> type:
    """The dataclass of a job's settings, in the module that holds its `run`."""
    module, name = JOBS[job].rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    command = ""
    try:
        command = OLD_NAMES.get(arguments[0], arguments[0]) if arguments else ""
        if command in COMMANDS:
            return importlib.import_module(COMMANDS[command]).main(arguments[1:])
        if not arguments:  # argparse would miss a --config
            print(f"{build_parser().format_help()}\nNothing was named to run.", file=sys.stderr)
            return 2
        if command and command not in JOBS and not command.startswith("-"):  # before argparse misses a job's --config
            meant = did_you_mean(command, [*JOBS, *COMMANDS])
            raise ConfigError(f"There is no job or command {command!r}.{meant} `{program('train')} --help` lists all.")
        return run_job(parse(arguments))
    except L2MError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (FileExistsError, NotADirectoryError) as error:
        print(
            f"error: A file is in the way of a folder: {error.filename}. Name another folder, or move the file.",
            file=sys.stderr,
        )
        return 2
    except OSError as error:  # a full disk, a folder without rights …
        print(f"error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # while steps are made, the training loop takes the signal itself, and saves
        print(f"\n{INTERRUPTED[command in RESUMABLE]}", file=sys.stderr)
        return 130


def parse(arguments: list[str]) -> argparse.Namespace:
    return build_parser().parse_intermixed_args(arguments)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("train"),
        description="Training jobs of Learning-to-Measure.",
        epilog=f"Commands with options of their own: {', '.join(COMMANDS)}; see each one's --help.",
    )
    parser.add_argument("job", choices=JOBS, metavar="JOB", help=", ".join(JOBS))
    parser.add_argument("--config", type=Path, required=True, help="YAML settings; see train/configs")
    parser.add_argument("--resume", action="store_true", help="continue from the newest checkpoint")
    parser.add_argument(
        "--check", action="store_true", help="read the settings and print them whole, defaults included; run nothing"
    )
    parser.add_argument("--yes", action="store_true", help="train on the processor what is meant for a GPU")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings that replace the file's")
    return parser


def run_job(given: argparse.Namespace) -> int:
    kind = settings_of(given.job)
    job = importlib.import_module(kind.__module__)
    prepared: Any = build_settings(kind, with_device(kind, read_settings(given.config, given.overrides)))
    if given.check:
        print(json.dumps({"settings": to_plain(prepared), "outcomes": outcomes_of(prepared)}))
        return 0
    if hasattr(prepared, "device"):
        prepared = replace(prepared, device=devices.for_training(prepared.device))
    prepared = for_the_processor(prepared, given.yes)
    options = {"resume": given.resume} if "resume" in inspect.signature(job.run).parameters else {}
    with joined(getattr(prepared, "device", "cpu")):
        job.run(prepared, **options)
    return 0


def with_device(kind: type, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the device of L2M_DEVICE, where they name none. Without either a job stays on the CPU: what a
    training draws at random depends on its device."""
    has_device = "device" in {field.name for field in fields(kind)}
    if has_device and "device" not in settings and os.environ.get(devices.VARIABLE):
        return {**settings, "device": devices.wanted()}
    return settings


def outcomes_of(job: Any) -> list[str]:
    """Which kinds of outcome the job's prior draws, which it also checks; none where a job has no prior."""
    if not hasattr(job, "prior"):
        return []
    from train.priors import priors_of

    return list(priors_of(job.prior))


if __name__ == "__main__":
    tell_warnings_plainly()
    leave(main())

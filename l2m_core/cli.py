"""The console command `l2m`: opens the app, starts training jobs, lists the released models.

The app and the jobs are named here, never imported: this package stays free of both, and `l2m --help` answers at once.
"""

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from l2m_core import __version__
from l2m_core.errors import L2MError, ModelFileError
from l2m_core.paths import model_folders, pretrained_dir, study_folders

DISTRIBUTION = "learning-to-measure"

# What a command runs, as `python -m …`, in front of the words that follow it.
LAUNCHES: dict[str, list[str]] = {
    "app": ["app"],
    "serve": ["app.api"],
    "store": ["app.store"],
    "train": ["train"],
    "evidence": ["l2m_core.evidence"],
    "evaluate": ["train", "evaluate"],
    "reproduce": ["train", "reproduce"],
}
# `-X l2m=COMMAND` tells the launched module by which of these it was called: `program` reads it. It ends with the process,
# where a variable of the environment would reach whatever the module starts.
TYPED = "l2m"
# The extras that a package needs, with a module that tells whether they are installed.
NEEDS = {"app": ("app,train", "streamlit")}


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="l2m",
        description="Learning to Measure: what to believe about a patient, and what to measure next.",
        epilog="`l2m COMMAND --help` tells more about each.",
    )
    parser.add_argument("--version", action="version", version=f"l2m {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("app", help="open the app in the browser")
    commands.add_parser("serve", help="answer other systems over HTTP: belief, ranking and verdict of a patient")
    commands.add_parser("store", help="look after the app's store: migrate, verify, back up")
    commands.add_parser("train", help="run a training job: predictor, policy, finetune …")
    commands.add_parser("evidence", help="measure on your own cohort, by cross-fitting, whether to trust it there")
    commands.add_parser("evaluate", help="measure a model beside the other methods")
    commands.add_parser("reproduce", help="run an experiment of the study, or all of them")
    commands.add_parser("models", help="list the released models")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in LAUNCHES:
        # Whatever follows is for the launched module to read, --help included.
        return launch(words[0], words[1:])
    build_parser().parse_args(words)
    try:
        return list_models()
    except L2MError as error:
        print(f"l2m: {error}", file=sys.stderr)
        return 1


def launch(command: str, words: list[str]) -> int:
    """Hand over to `python -m`; -P keeps a `train.py` in the user's folder from taking the job's place."""
    module, *before = LAUNCHES[command]
    extras, needed = NEEDS.get(module.split(".")[0], ("", ""))
    if needed and importlib.util.find_spec(needed) is None:
        install = f'pip install "{DISTRIBUTION}[{extras}]"'
        print(f"l2m: `l2m {command}` needs packages that are not installed. Run: {install}", file=sys.stderr)
        return 1
    command_line = [sys.executable, "-P", "-X", f"{TYPED}={command}", "-m", module, *before, *words]
    if os.name == "posix":
        # The module takes this process over, so that signals and the exit status are its own.
        sys.stdout.flush()
        os.execv(sys.executable, command_line)
    return subprocess.call(command_line)


def program(*words: str) -> str:
    """What a person typed to reach `python -m words…`, for its help: by way of `l2m`, or just that."""
    command = str(getattr(sys, "_xoptions", {}).get(TYPED))  # CPython's own, as -X is
    behind = LAUNCHES.get(command, [])
    if behind and [*words[: len(behind)]] == behind:
        return " ".join(["l2m", command, *words[len(behind) :]])
    return " ".join(["python -m", *words])


def at_least(low: int) -> Callable[[str], int]:
    """The type of an option that takes whole numbers from `low` on."""

    def read(text: str) -> int:
        if int(text) < low:
            raise argparse.ArgumentTypeError(f"it is {text}; give {low} or more")
        return int(text)

    read.__name__ = "int"  # what argparse calls a text that is no number
    return read


def port_number(text: str) -> int:
    """The type of an option that names a port to listen at; 0: any free one."""
    number = int(text)
    if not 0 <= number < 2**16:
        raise argparse.ArgumentTypeError(f"{text} is no port; it must be from 0 to {2**16 - 1}.")
    return number


def purpose(docstring: str | None) -> str:
    """What a module does, in its docstring's words without the command in front: "`python -m …`: what it does"."""
    text = (docstring or "").partition("`: ")[2]
    return text[:1].upper() + text[1:]


def list_models() -> int:
    folders = model_folders()
    if not folders:
        print(f"No released model in {pretrained_dir()}.")
        return 0
    print_models(folders)
    if study := study_folders():
        print("\nThe study's own, for its experiments; each for tasks like those that it was trained on:")
        print_models(study)
    return 0


def print_models(folders: dict[str, Path]) -> None:
    print(f"{'model':<16} {'parameters':>12} {'MiB':>7}  folder")
    for name, folder in folders.items():
        weights = sorted(folder.glob("*.safetensors"))
        parameters = sum(count_parameters(file) for file in weights)
        mebibytes = sum(file.stat().st_size for file in weights) / 2**20
        print(f"{name:<16} {parameters:>12,} {mebibytes:>7.1f}  {folder}")


def count_parameters(weights: Path) -> int:
    """How many numbers a safetensors file holds, by its header: eight bytes of length, then JSON."""
    with weights.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if length <= weights.stat().st_size else b""
    try:
        header = json.loads(text)
        return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{weights} is damaged or not a safetensors file. Install the model again.") from error


if __name__ == "__main__":
    sys.exit(main())

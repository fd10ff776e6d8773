"""`python -m train reproduce NAME|all --scale small|reduced|study`: each experiment a table, a figure and a verdict."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from l2m_core.answering import devices
from l2m_core.cli import program, purpose
from l2m_core.errors import L2MError, TrainingError
from l2m_core.paths import folder_to_write
from l2m_core.schema import did_you_mean
from train.engines import ENGINES, cores
from train.study.evaluation.manifest import default_data_folder
from train.study.experiments.datasets import check_data_folder
from train.study.experiments.experiment import EXPERIMENTS, SCALES, Folders, reproduce, scales_of
from train.study.experiments.overview import write_overview


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("train", "reproduce"), description=purpose(__doc__))
    parser.add_argument(
        "name", type=experiment_name, metavar="NAME", help=f"{', '.join(EXPERIMENTS)}; or all of them: all"
    )
    parser.add_argument("--scale", choices=SCALES, default="small", help="of the tasks; default: %(default)s")
    devices.add_option(parser)
    parser.add_argument("--data", type=Path, default=default_data_folder(), help="folder with the study's data sets")
    parser.add_argument("--partial", type=Path, default=Path("runs/reproduce"), help="where finished pieces are kept")
    parser.add_argument("--out", type=folder_to_write, default=Path("docs/results"))
    parser.add_argument("--engine", choices=ENGINES, default="processes")
    parser.add_argument("--workers", type=int, default=cores(), help="processes; default: one for each core at hand")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings in place of the scale's")
    return parser.parse_intermixed_args(arguments)


def experiment_name(text: str) -> str:
    """The type of the name: one that is none is told with the nearest."""
    if text not in (names := (*EXPERIMENTS, "all")):
        meant = did_you_mean(text, names)
        raise argparse.ArgumentTypeError(f"There is no experiment {text!r}.{meant} --help lists all.")
    return text


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    devices.apply_option(given.device)
    devices.tell_of_gpu()
    check_data_folder(given.data)
    folders = Folders(given.data, given.partial, given.out)
    if given.name != "all":
        run(given.name, given, folders)
        return 0
    failed = []
    names = [name for name in EXPERIMENTS if given.scale in scales_of(name)]
    for name in names:
        try:
            run(name, given, folders)
        except L2MError as error:  # what one lacks (a GPU, a data set that can be read) need not stop the others
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    if failed:
        raise TrainingError(f"{len(failed)} of {len(names)} experiments could not be run: {', '.join(failed)}.")
    return 0


def run(name: str, given: argparse.Namespace, folders: Folders) -> None:
    start = time.perf_counter()
    command = published_command(name, given.scale, given.overrides)
    verdict = reproduce(
        name,
        given.scale,
        folders,
        command,
        engine=given.engine,
        workers=given.workers,
        overrides=given.overrides,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    print(f"{name}: {verdict.status}. {verdict.reason} ({time.perf_counter() - start:.0f} s)", flush=True)
    write_overview(given.out)


def published_command(name: str, scale: str, overrides: Sequence[str]) -> str:
    """What a person would type to get the same; folders of this machine stay out of published pages."""
    shown = [text for text in overrides if not text.startswith("folder=")]
    shown = [f"model={Path(text).name}" if text.startswith("model=") else text for text in shown]
    return shlex.join(["python", "-m", "train", "reproduce", name, "--scale", scale, *shown])

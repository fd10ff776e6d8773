"""`python -m train evaluate --suite real|synthetic`: methods side by side on the same rows, resumable."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from l2m_core import plugins
from l2m_core.answering import devices
from l2m_core.cli import program, purpose
from l2m_core.errors import ConfigError
from l2m_core.methods import METHODS
from l2m_core.paths import folder_to_write
from l2m_core.settings import read_settings, refuse_unknown
from train.data_plugins import PluggedSource, offered_loaders
from train.engines import ENGINES, cores, fan_out
from train.study.evaluation.advice import measure_first_advice
from train.study.evaluation.cells import Cell, draw_trial, real_cells, too_small, unfitting_contexts
from train.study.evaluation.manifest import MOST_FEATURES, Source, default_data_folder, read_manifest
from train.study.evaluation.report import read_table_of_records, write_report
from train.study.evaluation.scores import score
from train.study.evaluation.trial_runs import (
    MethodChoice,
    check_methods,
    load_model,
    refuse_if_all_failed,
    run_trial,
    scored,
    work_groups,
)
from train.study.evaluation.versions import code_version, is_same_code
from train.study.resumable_table import ResumableTable

CONTEXTS = (100, 400, 1000, 2000, 4000)
REAL_METHODS = (
    "l2m_council",
    "l2m",
    "l2m_council_random",
    "base_rate",
    "logistic",
    "boosting",
    "mlp_random",
    "gdfs",
    "dime",
    "dqn",
)
KEYS = ("cohort", "context", "missing", "seed", "method", "model", "budget", "test_rows")


@dataclass(frozen=True)
class RealJob:
    """One cell for some methods; what a worker process gets."""

    source: Source | PluggedSource
    cell: Cell
    data: str
    """Which rows and roles the cohort has: its hash."""
    methods: tuple[str, ...]
    model: str
    fingerprint: str
    budget: int
    test_rows: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", choices=("real", "synthetic"), default="real", help="what is evaluated on")
    names = "l2m, l2m_POLICY (random, learned, monte_carlo), l2m_council, l2m_council_POLICY, " + ", ".join(
        name for name in (*METHODS, *plugins.offered(plugins.METHODS)) if name != "l2m"
    )
    names += "; or module:object"
    parser.add_argument("--methods", nargs="+", metavar="NAME", help=names)
    parser.add_argument(
        "--cohorts",
        nargs="+",
        metavar="NAME",
        help="names of the manifest, or a package's module:object; default: all but the widest",
    )
    parser.add_argument(
        "--contexts", nargs="+", metavar="ROWS", type=int, default=CONTEXTS, help="rows that are learnt from"
    )
    parser.add_argument(
        "--missing", nargs="+", metavar="SHARE", type=float, default=[0.0, 0.3], help="hidden at random"
    )
    parser.add_argument(
        "--seeds", nargs="+", metavar="SEED", type=int, default=[0, 1, 2], help="each draws rows and holes anew"
    )
    parser.add_argument("--budget", type=int, default=8, help="tests for each patient, at most")
    parser.add_argument("--test-rows", type=int, default=300, help="rows decided about, at most")
    parser.add_argument("--tasks", type=int, default=20, help="of the synthetic suite: tasks of each family")
    parser.add_argument(
        "--heads",
        nargs="+",
        default=[],
        metavar="NAME=FOLDER",
        help="of the synthetic suite: models on the same trunk whose learned policies are compared",
    )
    parser.add_argument("--model", default="general", help="a released model's name or folder")
    parser.add_argument(
        "--beside", type=Path, help="of the real suite: an earlier model's table (real.csv), to compare with"
    )
    devices.add_option(parser)
    parser.add_argument("--data", type=Path, default=default_data_folder(), help="folder with a manifest.yaml")
    parser.add_argument("--partial", type=Path, default=Path("runs/evaluate"), help="where finished trials are kept")
    parser.add_argument(
        "--out", type=folder_to_write, default=Path("docs/results"), help="where the page and the table go"
    )
    parser.add_argument("--engine", choices=ENGINES, default="processes", help="what trials fan out over")
    parser.add_argument(
        "--workers", type=int, default=cores(), help="trials at a time; default: one for each core at hand"
    )
    parser.add_argument("--repeat-changed", action="store_true", help="run methods again whose code has changed since")
    parser.add_argument("--report-only", action="store_true", help="write the report of what is finished, run nothing")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("train", "evaluate"),
        description=purpose(__doc__),
        epilog="`--config FILE [key=value …]` reads these options from YAML, by their names; options beside it win.",
    )
    add_arguments(parser)
    return parser


def options_by_name() -> dict[str, argparse.Action]:
    return {action.dest: action for action in make_parser()._actions if action.dest != "help"}


def with_config(arguments: Sequence[str]) -> list[str]:
    """`--config FILE key=value …` as the options that it stands for, ahead of those that were given beside it."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--heads", nargs="+")  # its words look like settings
    found, rest = parser.parse_known_args(arguments)
    if found.config is None:
        return list(arguments)
    heads = ["--heads", *found.heads] if found.heads else []
    overrides = [text for text in rest if "=" in text and not text.startswith("-")]
    known = options_by_name()
    given: list[str] = []
    settings = read_settings(found.config, overrides)
    refuse_unknown(settings, known)
    for key, value in settings.items():
        if value is not None and value is not False:
            values = [] if value is True else value if isinstance(value, list) else [value]
            given += [known[key].option_strings[0], *map(str, values)]
    return [*given, *(text for text in rest if text not in overrides), *heads]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    return make_parser().parse_args(with_config(arguments))


def main(arguments: Sequence[str]) -> int:
    arguments = with_config(arguments)
    given = parse(arguments)
    check_numbers(given)
    devices.apply_option(given.device)
    devices.tell_of_gpu()
    command = published_command(arguments)
    if given.suite == "synthetic":
        from train.study.evaluation.synthetic import evaluate_synthetic

        print(evaluate_synthetic(given, command))
    else:
        print(evaluate_real(given, command))
    return 0


LEAST = {"contexts": 2, "seeds": 0, "budget": 0, "test_rows": 1, "tasks": 1, "workers": 1}


def check_numbers(given: argparse.Namespace) -> None:
    """Refuses the first number that means nothing, by its option."""
    for name, low in LEAST.items():
        value = getattr(given, name)
        for number in value if isinstance(value, list | tuple) else [value]:
            if number < low:
                raise ConfigError(f"--{name.replace('_', '-')} is {number}; give {low} or more.")
    for share in given.missing:
        if not 0 <= share < 1:
            raise ConfigError(f"--missing is {share:g}; give a share from 0 to below 1, such as 0.3.")


PRIVATE = ("--device", "--data", "--partial", "--out", "--engine", "--workers")
"""Options that change where and how, but not what comes out: they say more about a machine than about a result."""


def published_command(arguments: Sequence[str]) -> str:
    """What a reader would type to get the same."""
    shown: list[str] = []
    skipping = False
    for argument in arguments:
        if argument.startswith("--"):
            skipping = argument.split("=")[0] in (*PRIVATE, "--report-only")
        if not skipping:
            is_model = bool(shown) and shown[-1] == "--model"
            is_far = bool(shown) and shown[-1] == "--beside" and Path(argument).is_absolute()
            shown.append(Path(argument).name if is_model or is_far else argument)
    return shlex.join(["python", "-m", "train", "evaluate", *shown])


def evaluate_real(given: argparse.Namespace, command: str) -> str:
    methods = check_methods(given.methods or REAL_METHODS)
    if given.beside is not None:  # before hours of work
        if not given.beside.is_file():
            raise ConfigError(f"There is no table {given.beside}; --beside takes a real.csv that this command wrote.")
        read_table_of_records(given.beside)
    fingerprint = fingerprint_of(given.model, methods)
    plugged = [PluggedSource(name, given.data) for name in plugged_cohorts(given.cohorts or ())]
    # A folder without a manifest will do where no cohort of it is asked for.
    only_plugged = bool(plugged) and len(plugged) == len(given.cohorts)
    manifest = [] if only_plugged else read_manifest(given.data, include_wide=True)
    sources = choose([*manifest, *plugged], given.cohorts)
    sizes = {source.name: len(source.load()) for source in sources}
    data = {source.name: source.load().content_hash for source in sources}
    skipped = too_small(sizes) | ({} if given.cohorts else too_wide(manifest))
    for name, reason in skipped.items():
        print(f"left out: {name}: {reason}", file=sys.stderr, flush=True)
    if given.contexts != CONTEXTS:  # not those that are taken where they fit
        for name, reason in unfitting_contexts(sizes, given.contexts).items():
            print(f"{name}: {reason}", file=sys.stderr, flush=True)
    cells = real_cells(sizes, given.contexts, given.missing, given.seeds)
    table = ResumableTable(given.partial / "real.jsonl", KEYS)
    if not given.report_only:
        jobs = _missing_jobs(table, sources, cells, methods, given, fingerprint)
        _run(table, jobs, given)
    wanted = {(c.cohort, c.context, c.missing, c.seed) for c in cells}
    records = [
        r
        for r in table.records.values()
        if (r["cohort"], r["context"], r["missing"], r["seed"]) in wanted
        and r.get("data", data[r["cohort"]]) == data[r["cohort"]]
        and r["method"] in methods
        and r["model"] in ("", fingerprint)
        and r["budget"] == given.budget
        and r["test_rows"] == given.test_rows
    ]
    about = f"model {Path(given.model).name} ({fingerprint[:12]})" if fingerprint else "no pretrained model"
    advice = measure_first_advice(sources, given.model, given.partial, not given.report_only) if fingerprint else ""
    page = write_report(given.out, "real", records, methods[0], command, about, advice, skipped, given.beside)
    refuse_if_all_failed(records, given.out / "real.md")
    return page


def fingerprint_of(model: str, methods: Sequence[str]) -> str:
    """Which model the results belong to; empty where no method uses one."""
    return load_model(model).fingerprint if any(MethodChoice(name).pretrained for name in methods) else ""


def plugged_cohorts(names: Sequence[str]) -> list[str]:
    """Those that other packages have: by `module:object`, or by a name that they offer."""
    return [name for name in names if plugins.is_address(name) or name in offered_loaders()]


def choose(sources: Sequence[Source | PluggedSource], names: Sequence[str] | None) -> list[Source | PluggedSource]:
    known = {source.name: source for source in sources}
    for name in names or ():
        if name not in known:
            raise ConfigError(f"There is no cohort '{name}' in the manifest. It has: {', '.join(known)}.")
    return [known[name] for name in names] if names else [source for source in sources if not source.wide]


def too_wide(sources: Sequence[Source]) -> dict[str, str]:
    """Name → why a cohort is left out where none is asked for by its name."""
    reason = f"more than {MOST_FEATURES} features; name it with --cohorts to compare on it"
    return {source.name: reason for source in sources if source.wide}


def _missing_jobs(table, sources, cells, methods, given, fingerprint) -> list[RealJob]:
    """A job for each cell and group of methods, without what is finished."""
    by_name = {source.name: source for source in sources}
    jobs = []
    for cell in cells:
        source = by_name[cell.cohort]
        for group in work_groups(methods):
            job = RealJob(
                source, cell, source.load().content_hash, group, given.model, fingerprint, given.budget, given.test_rows
            )
            left = tuple(m for m in group if not _finished(table, _identity(job, m), given.repeat_changed))
            if left:
                jobs.append(replace(job, methods=left))
    return jobs


def _finished(table: ResumableTable, identity: dict[str, Any], repeat_changed: bool) -> bool:
    if not table.has(identity):
        return False
    return not repeat_changed or is_same_code(table.records[table.key(identity)].get("code", ""), identity["method"])


def _run(table: ResumableTable, jobs: list[RealJob], given: argparse.Namespace) -> None:
    start = time.perf_counter()
    for done, (number, records) in enumerate(fan_out(run_real, jobs, engine=given.engine, workers=given.workers), 1):
        table.append(records)
        cell = jobs[number].cell
        results = ", ".join(f"{r['method']} {r.get('error') or format(r['log_loss'], '.4f')}" for r in records)
        name = f"{cell.cohort} {cell.context} {cell.missing:g} seed {cell.seed}"
        seconds = time.perf_counter() - start
        print(f"{done}/{len(jobs)} {name}: {results} ({seconds:.0f} s)", file=sys.stderr, flush=True)


def run_real(job: RealJob) -> list[dict[str, Any]]:
    """The records of one job."""
    cohort = job.source.load()
    trial = draw_trial(cohort, job.cell, job.test_rows)
    choices = [MethodChoice(name) for name in job.methods]
    records = []
    for method_run in run_trial(trial, choices, model=job.model, budget=job.budget, seed=job.cell.seed):
        facts = {
            "kind": cohort.kind,
            "features": len(cohort.names),
            "n_test": len(trial.y),
            "code": code_version(method_run.method),
        }
        record = {**_identity(job, method_run.method), **facts}
        record |= scored(method_run, lambda rollout: score(rollout, trial.y, trial.context))
        if "error" not in record:
            record |= {
                "fit_seconds": round(method_run.fit_seconds, 3),
                "query_seconds": round(method_run.query_seconds, 3),
            }
        records.append(record)
    return records


def _identity(job: RealJob, method: str) -> dict[str, Any]:
    """What a result depends on; a baseline's does not depend on the model."""
    cell = job.cell
    return {
        "cohort": cell.cohort,
        "context": cell.context,
        "missing": cell.missing,
        "seed": cell.seed,
        "data": job.data,
        "method": method,
        "model": job.fingerprint if MethodChoice(method).pretrained else "",
        "budget": job.budget,
        "test_rows": job.test_rows,
    }

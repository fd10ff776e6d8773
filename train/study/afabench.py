"""`python -m train afabench export|import`: evaluations in AFABench's layout, out of ours and into our tidy tables.

`export` runs methods on cohorts and writes what they did; `import` scores such files, ours or AFABench's own, into one table of
single tasks, laid out as the experiments' NAME-tasks.csv.gz.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from l2m_core.cli import at_least, program, purpose
from l2m_core.errors import ConfigError, InputError
from l2m_core.learn.checkpoints import write_text
from l2m_core.paths import file_to_write, folder_to_write
from train.study.afabench_layout import FILE, Evaluation, evaluation_of, read_evaluation, write_evaluation
from train.study.evaluation.cells import Cell, draw_trial
from train.study.evaluation.manifest import default_data_folder, read_manifest
from train.study.evaluation.trial_runs import MethodChoice, MethodRun, check_methods, run_trial
from train.study.experiments.verdicts import tidy

TRAINED = "train_seed-null+train_hard_budget-null+train_soft_budget_param-null"
PLACE = re.compile(r"dataset-(?P<dataset>.+)\+instance_idx-(?P<instance>\d+)")


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    return {"export": export, "import": collect}[given.way](given)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("train", "afabench"), description=purpose(__doc__))
    ways = parser.add_subparsers(dest="way", required=True)
    out = ways.add_parser("export", help="run methods and write what they did")
    out.add_argument("--cohorts", nargs="+", required=True, metavar="NAME", help="names of the folder's manifest")
    out.add_argument("--methods", nargs="+", default=["l2m"], metavar="NAME", help="as of `train evaluate`")
    out.add_argument("--seeds", nargs="+", type=at_least(0), default=[0], metavar="SEED", help="each draws rows anew")
    out.add_argument("--context", type=at_least(2), default=100, help="rows that are learnt from")
    out.add_argument("--test-rows", type=at_least(1), default=300, help="rows decided about, at most")
    out.add_argument("--budget", type=at_least(0), default=8, help="tests for each patient, at most")
    out.add_argument("--model", default="general", help="a released model's name or folder")
    out.add_argument("--data", type=Path, default=default_data_folder(), help="folder with a manifest.yaml")
    out.add_argument("--out", type=folder_to_write, default=Path("runs/afabench"), help="folder to write into")
    into = ways.add_parser("import", help="score such files")
    into.add_argument("folder", type=Path, help=f"in which METHOD/dataset-NAME+instance_idx-N/…/{FILE} lie")
    into.add_argument(
        "--out", type=file_to_write, required=True, help="CSV to write: a row for each task, score and step"
    )
    return parser.parse_args(arguments)


# -- out --------------------------------------------------------------------------------------------------------------


def export(given: argparse.Namespace) -> int:
    known = {source.name: source for source in read_manifest(given.data)}
    unknown = [name for name in given.cohorts if name not in known]
    if unknown:
        raise ConfigError(f"There is no cohort {unknown[0]!r} in {given.data.name}; choose of: {', '.join(known)}.")
    methods, failed = check_methods(given.methods), 0
    for name in given.cohorts:
        cohort = known[name].load()
        for seed in given.seeds:
            trial = draw_trial(cohort, Cell(name, given.context, 0.0, seed), given.test_rows)
            choices = [MethodChoice(method) for method in methods]
            for run in run_trial(trial, choices, model=given.model, budget=given.budget, seed=seed):
                if run.rollout is None:
                    failed += 1
                    print(f"{name}, seed {seed}, {run.method}: {run.error}", file=sys.stderr)
                    continue
                file = given.out / place_of(run, name, seed, given.budget)
                write_evaluation(evaluation_of(run.rollout, trial, seed), file)
                print(file)
    return int(failed > 0)


def place_of(run: MethodRun, dataset: str, seed: int, budget: int) -> Path:
    """Where AFABench looks for it, below its folder of evaluations."""
    asked = f"eval_seed-{seed}+eval_hard_budget-{budget}+eval_soft_budget_param-null"
    return Path(run.method) / f"dataset-{dataset}+instance_idx-{seed}" / TRAINED / asked / FILE


# -- in ---------------------------------------------------------------------------------------------------------------


def collect(given: argparse.Namespace) -> int:
    records = [record for file in sorted(given.folder.rglob(FILE)) for record in records_of(file)]
    if not records:
        raise InputError(f"{given.folder.name} holds no {FILE}; give the folder that AFABench's evaluations lie in.")
    table = tidy(records)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    write_text(given.out, table.to_csv(index=False, float_format="%.6g"))
    tasks = pd.DataFrame(records)[["family", "task"]].drop_duplicates()
    print(f"{given.out}: {len(table):,} rows, {len(tasks)} tasks")
    return 0


def records_of(file: Path) -> Iterator[dict]:
    """One for each classifier; data set, instance, method and budget come from the folders that the file lies in."""
    found = next((i for i, part in enumerate(file.parts) if PLACE.fullmatch(part)), 0)
    place = PLACE.fullmatch(file.parts[found])
    if place is None:
        raise InputError(f"{file}: no folder above it reads dataset-NAME+instance_idx-N, which says what it is of.")
    evaluation = read_evaluation(file)
    facts = {"family": place["dataset"], "task": int(place["instance"]), "unit": place["dataset"]}
    for classifier in evaluation.predicted:
        variant = f"{classifier}, seed {evaluation.seed}, budget {_budget(evaluation)}"
        yield {**facts, "variant": variant, "method": file.parts[found - 1], **evaluation.scores(classifier)}


def _budget(evaluation: Evaluation) -> str:
    return "none" if evaluation.budget is None else f"{evaluation.budget:g}"

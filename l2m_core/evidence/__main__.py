"""`python -m l2m_core.evidence cohort.csv --outcome …`, also `l2m evidence`: can I trust it on my cohort?"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from l2m_core.answering.settings import MODEL_POLICIES
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError, L2MError, RangeWarning
from l2m_core.evidence.cross_fitting import gather
from l2m_core.evidence.folds import EvidenceSettings
from l2m_core.memory import load

DEFAULTS = EvidenceSettings()


def main(arguments: Sequence[str] | None = None) -> int:
    given = build_parser().parse_args(arguments)
    try:
        return run(given)
    except L2MError as error:
        print(f"l2m evidence: {error}", file=sys.stderr)
        return 2


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="l2m evidence", description="Can I trust it on my cohort? By cross-fitting.")
    parser.add_argument("cohort", type=Path, help="CSV, gzipped CSV or Parquet with known outcomes")
    parser.add_argument("--outcome", help="the column to predict; not needed when the schema names it")
    parser.add_argument("--baseline", nargs="*", default=[], help="columns known from the start")
    parser.add_argument("--schema", type=Path, help="YAML schema of the cohort")
    parser.add_argument(
        "--decimal", choices=(".", ","), help="decimal sign of the file, where its cells do not tell it"
    )
    parser.add_argument(
        "--model", default="general", help="a released model's name, or a folder (default: %(default)s)"
    )
    parser.add_argument(
        "--folds", type=int, default=DEFAULTS.folds, help="parts of the patients (default: %(default)s)"
    )
    parser.add_argument("--budget", type=int, default=DEFAULTS.budget, help="most tests (default: %(default)s)")
    parser.add_argument("--most-rows", type=int, default=DEFAULTS.most_rows, help="rows asked (default: %(default)s)")
    parser.add_argument("--policy", choices=MODEL_POLICIES, help="what tests are ordered by (default: the model's own)")
    parser.add_argument("--patients", default="", help="a column that tells which rows belong to one patient")
    parser.add_argument("--draws", type=int, default=DEFAULTS.draws, help="bootstrap samples (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=DEFAULTS.seed)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to this file")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def run(given: argparse.Namespace) -> int:
    model = load(given.model)
    policy = given.policy or model.release.inference.policy
    settings = EvidenceSettings(
        given.folds, given.budget, given.most_rows, policy, given.patients, given.draws, given.seed
    )
    cohort = Cohort.from_file(
        given.cohort,
        given.outcome,
        baseline=given.baseline,
        schema=str(given.schema) if given.schema else None,
        decimal=given.decimal,
    )
    for note in (*cohort.warnings, *model.check(cohort)):
        print(f"note: {note}", file=sys.stderr)
    with tqdm(total=100, disable=given.quiet, file=sys.stderr, bar_format="{percentage:3.0f}% {postfix}") as bar:

        def report(share: float, sentence: str) -> None:
            bar.set_postfix_str(sentence, refresh=False)
            bar.update(100 * share - bar.n)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)  # said above
            evidence = gather(model, cohort, settings, report=report)
        bar.update(100 - bar.n)
    print(evidence.text())
    if given.json:
        try:
            given.json.write_text(json.dumps(evidence.to_data(), indent=1), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"The figures cannot be written to {given.json} ({error.strerror}).") from error
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

"""`python -m l2m_core.evidence cohort.csv --outcome …`, also `l2m evidence`: can I trust it on my cohort?"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from l2m_core.answering import devices
from l2m_core.answering.settings import MODEL_POLICIES
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError, L2MError, RangeWarning, tell_warnings_plainly
from l2m_core.evidence.cross_fitting import gather
from l2m_core.evidence.duration import expected_seconds, in_words
from l2m_core.evidence.folds import EvidenceSettings
from l2m_core.evidence.sentences import at_threshold, check_threshold
from l2m_core.learn.checkpoints import write_text
from l2m_core.memory import load
from l2m_core.paths import check_file, file_to_write
from l2m_core.tables import reading_options

DEFAULTS = EvidenceSettings()
FIRST_ESTIMATE = 1.0  # seconds of work before the pace says anything


def main(arguments: Sequence[str] | None = None) -> int:
    given = build_parser().parse_args(arguments)
    try:
        return run(given)
    except L2MError as error:
        print(f"l2m evidence: {error}", file=sys.stderr)
        return 2


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="l2m evidence", description="Can I trust it on my cohort? By cross-fitting.")
    parser.add_argument("cohort", type=Path, help="CSV, gzipped CSV, Excel or Parquet with known outcomes")
    reading_options.add_options(parser)
    parser.add_argument(
        "--model", default="general", help="a released model's name, or a folder (default: %(default)s)"
    )
    devices.add_option(parser)
    parser.add_argument(
        "--folds", type=int, default=DEFAULTS.folds, help="parts of the patients (default: %(default)s)"
    )
    parser.add_argument("--budget", type=int, default=DEFAULTS.budget, help="most tests (default: %(default)s)")
    parser.add_argument("--most-rows", type=int, default=DEFAULTS.most_rows, help="rows asked (default: %(default)s)")
    parser.add_argument("--policy", choices=MODEL_POLICIES, help="what tests are ordered by (default: the model's own)")
    parser.add_argument(
        "--patients",
        help="a column that tells which rows belong to one patient, '' for none (default: found where patients have several)",
    )
    parser.add_argument("--draws", type=int, default=DEFAULTS.draws, help="bootstrap samples (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=DEFAULTS.seed)
    parser.add_argument("--no-council", action="store_true", help="the general model alone, without the council")
    parser.add_argument(
        "--no-conventional", action="store_true", help="without a regression and boosted trees to compare with"
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="P",
        help="also say what acting from this probability on would bring, such as 0.2; a whole percentage",
    )
    parser.add_argument("--json", type=file_to_write, metavar="FILE", help="also write all figures to this file")
    parser.add_argument("--quiet", action="store_true", help="say nothing of the progress")
    return parser


class Progress:
    """The share that is done, what is going on, and how long the rest will take, by the pace so far.

    On a terminal it is one line that changes; in a file, a line for each thing that is done.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._stays = quiet, not sys.stderr.isatty()
        self._began, self._last = time.monotonic(), ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._last and not self._stays:
            print(file=sys.stderr)

    def __call__(self, share: float, sentence: str) -> None:
        if self._quiet or (self._stays and sentence == self._last):
            return
        self._last = sentence
        line = f"{100 * share:3.0f}%  {sentence}{time_left(time.monotonic() - self._began, share)}"
        print(line if self._stays else f"\r\x1b[K{line}", end="\n" if self._stays else "", file=sys.stderr, flush=True)


def time_left(passed: float, share: float) -> str:
    """In words, from the seconds that a share of the work took; nothing before there is a pace."""
    if share <= 0 or passed < FIRST_ESTIMATE:
        return ""
    left = passed * (1 - share) / share
    if left < 90:
        return f" About {max(1, round(left)):.0f} s left."
    return f" About {left / 60:.0f} min left." if left < 90 * 60 else f" About {left / 3600:.1f} h left."


def run(given: argparse.Namespace) -> int:
    if given.json:
        check_file(given.json, filter(None, (given.cohort, given.schema)), "--json")
    devices.apply_option(given.device)
    model = load(given.model)
    policy = given.policy or model.release.inference.policy
    settings = EvidenceSettings(
        given.folds,
        given.budget,
        given.most_rows,
        policy,
        given.patients,
        given.draws,
        given.seed,
        council=not given.no_council,
        conventional=not given.no_conventional,
    )
    if given.threshold is not None:
        check_threshold(given.threshold)
    cohort = Cohort.from_file(
        given.cohort,
        given.outcome,
        baseline=given.baseline,
        schema=str(given.schema) if given.schema else None,
        **reading_options.chosen(given).keywords(),
    )
    if given.threshold is not None and cohort.kind == "continuous":
        raise ConfigError(
            f"--threshold: the outcome '{cohort.schema.outcome.name}' is continuous, which has no probability to act on. "
            "Leave it out."
        )
    for note in (*cohort.remarks, *model.check(cohort)):
        print(f"note: {note}", file=sys.stderr)
    if not given.quiet:
        print(model.release.device.sentence, file=sys.stderr)
        print(f"{in_words(expected_seconds(model, cohort, settings))}, by a quick trial.", file=sys.stderr)
    with Progress(given.quiet) as report:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)  # said above
            evidence = gather(model, cohort, settings, report=report)
    print(evidence.text())
    for curve in evidence.decisions_at if given.threshold is not None else ():
        print(at_threshold(curve, given.threshold, evidence.shown_voice.label(evidence.kind)).text)
    if given.json:
        try:
            given.json.parent.mkdir(parents=True, exist_ok=True)
            write_text(given.json, json.dumps(evidence.to_data(), indent=1))
        except OSError as error:
            raise ConfigError(f"The figures cannot be written to {given.json} ({error.strerror}).") from error
    return 0


if __name__ == "__main__":
    tell_warnings_plainly()
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nl2m evidence: stopped; of a run that was interrupted nothing is kept.", file=sys.stderr)
        sys.exit(130)

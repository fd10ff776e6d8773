"""`python -m train acquire`: what to measure next for every patient of a file of any size, in parallel chunks.

The patients of a CSV are streamed: only the chunks being worked on are in memory. A run that was interrupted continues where it
stopped, because chunks are written as whole files and joined at the end.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from l2m_core.acquire.policies import NAMED_POLICIES, is_seeded, make_policy
from l2m_core.acquire.rollout import Rollout, roll_out
from l2m_core.acquire.stopping import Stopping
from l2m_core.answering import devices
from l2m_core.answering.release import FACTS, find_model
from l2m_core.cli import at_least, program, purpose
from l2m_core.cohort import Cohort
from l2m_core.council.council import Recipe
from l2m_core.errors import CohortError, ConfigError, DeviceWarning, FeatureError
from l2m_core.memory import CohortMemory, load
from l2m_core.paths import check_file, file_to_write, naming
from l2m_core.tables import reading_options
from l2m_core.tables.cell_parsing import number_text
from l2m_core.tables.spreadsheet_cells import plain_frame
from train.engines import ENGINES, cores, fan_out
from train.patients_file import Cell, PatientsFile, open_patients

WHEN = ("before", "after")  # the tests are measured


@dataclass(frozen=True)
class ChunkJob:
    """Some consecutive patients, and all that a worker needs to answer for them."""

    number: int
    first: int
    """Row number of the first patient, from 0."""
    rows: pd.DataFrame
    settings: AcquireSettings
    target: Path
    council: str
    """The recipe of the council that is heard, as JSON; 'null': the model answers alone."""


@dataclass(frozen=True)
class AcquireSettings:
    """What all chunks share. Workers condition the model once on it."""

    model: str
    cohort: str
    outcome: str
    baseline: tuple[str, ...]
    schema: str
    policy: str
    budget: int
    least_gain: float | None
    threads: int
    keep: tuple[str, ...] = ()
    """Columns of the patients that are copied to the answers: identifiers, say."""
    patients_sheet: str | None = None
    """Of a workbook of patients that has several."""
    reading: reading_options.ReadingOptions = reading_options.ReadingOptions()
    """How the cohort's file is read."""
    council: bool = False
    """Whether models fitted to the cohort's own rows are heard beside the model, as on the page."""


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    devices.apply_option(given.device)
    devices.tell_of_gpu()
    settings = AcquireSettings(
        given.model,
        str(given.cohort),
        given.outcome or "",
        tuple(given.baseline),
        str(given.schema or ""),
        given.policy,
        given.budget,
        given.least_gain,
        given.threads,
        tuple(dict.fromkeys(given.keep)),
        given.patients_sheet,
        reading_options.chosen(given),
        given.council,
    )
    start = time.perf_counter()
    with naming(given.out):
        patients = acquire(
            settings,
            given.patients,
            given.out,
            chunk=given.chunk,
            engine=given.engine,
            workers=given.workers,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
    print(f"{given.out}: {patients:,} patients in {time.perf_counter() - start:.0f} s")
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("train", "acquire"), description=purpose(__doc__))
    parser.add_argument(
        "--cohort", type=Path, required=True, help="CSV, Excel or Parquet with known outcomes: the context"
    )
    reading_options.add_options(parser)
    parser.add_argument(
        "--patients", type=Path, required=True, help="CSV, Excel or Parquet: patients whose values may be asked for"
    )
    parser.add_argument(
        "--patients-sheet", metavar="SHEET", help="the sheet with the patients, of an Excel workbook that has several"
    )
    parser.add_argument(
        "--keep", nargs="*", default=[], help="columns of the patients copied to the answers, such as ids"
    )
    parser.add_argument("--out", type=file_to_write, required=True, help="CSV to write")
    parser.add_argument("--model", default="general")
    parser.add_argument("--council", action="store_true", help="hear the cohort's council as well, as the page does")
    devices.add_option(parser)
    parser.add_argument("--policy", choices=sorted(NAMED_POLICIES), default="gain")
    parser.add_argument("--budget", type=at_least(0), default=8)
    parser.add_argument("--least-gain", type=float, help="stop a patient when the best test promises less, in nats")
    parser.add_argument("--chunk", type=int, default=2000, help="patients in a piece of work")
    parser.add_argument("--engine", choices=ENGINES, default="processes")
    parser.add_argument("--workers", type=int, default=cores(), help="processes; default: one for each core at hand")
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    return parser.parse_args(arguments)


def acquire(
    settings: AcquireSettings,
    patients: Path,
    out: Path,
    *,
    chunk: int = 2000,
    engine: str = "processes",
    workers: int = 1,
    say=lambda text: None,
) -> int:
    """Writes `out` and returns the number of patients. Columns: row, action_1 …, the prediction before and after."""
    if chunk < 1:
        raise ConfigError(f"chunk is {chunk}; it must be at least 1.")
    stopping_of(settings)  # refuses a least gain that cannot be kept to
    check_file(out, (patients, *filter(None, (settings.cohort, settings.schema))), "--out")
    run_id = identity(settings, patients, chunk)
    cohort = _read_context(settings)
    _refuse_names_of_answers(settings, cohort)
    for note in cohort.remarks:
        say(f"note: {note}")
    given = open_patients(patients, cohort, settings.keep, settings.patients_sheet)
    parts = out.with_name(out.name + ".parts")
    _open_parts(parts, run_id)
    council = _council(settings, cohort, parts, say)
    total = 0

    def left() -> Iterator[ChunkJob]:
        nonlocal total
        for job in chunk_jobs(settings, given, chunk, parts, council):
            total += len(job.rows)
            if not job.target.is_file():
                yield job

    try:
        for _, first in fan_out(answer_chunk, left(), engine=engine, workers=workers, threads=settings.threads):
            # By its place in the file: of a run that goes on, the pieces left are counted from 0.
            say(f"chunk {first // chunk + 1}: patients from row {first:,}")
        with _written_whole(out) as draft, draft.open("wb") as file:
            for path in sorted(parts.glob("chunk-*.csv")):
                with path.open("rb") as part:
                    shutil.copyfileobj(part, file)
    except OSError:  # a full disk, most often
        if any(parts.glob("chunk-*.csv")):
            say(f"What is finished is kept in {parts.name}; the same command goes on from there.")
        raise
    shutil.rmtree(parts)
    return total


def answer_chunk(job: ChunkJob) -> int:
    """Writes the chunk's file, whole or not at all, the first one with the header; returns its first row's number."""
    memory = _memory(job.settings, job.council)
    kept = job.rows[list(job.settings.keep)].map(_as_text)
    unread = [name for name in job.settings.keep if name not in memory.cohort.schema.names]
    x = _encoded(memory.cohort, job.rows.drop(columns=unread), job.first)
    asked = job.settings.policy
    # Nobody's draws depend on where the file was cut.
    policy = make_policy(asked, first=job.first) if is_seeded(asked) else make_policy(asked)
    rollout = roll_out(memory, x, budget=job.settings.budget, policy=policy, stopping=stopping_of(job.settings))
    table = plain_frame(_table(rollout, job.first, memory, kept))
    with _written_whole(job.target) as draft:
        table.to_csv(draft, index=False, header=job.number == 0, float_format="%.6g", lineterminator="\n")
    return job.first


def stopping_of(settings: AcquireSettings) -> Stopping | None:
    return None if settings.least_gain is None else Stopping(least_gain=settings.least_gain)


def _as_text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else "" if cell is None else number_text(cell)


def _refuse_names_of_answers(settings: AcquireSettings, cohort: Cohort) -> None:
    """A kept column may not be called as one that the answers have of their own."""
    classes = [] if cohort.kind == "continuous" else cohort.classes
    own = {"row", "cost", *(f"action_{step}" for step in range(1, settings.budget + 1))}
    own |= {f"{what}_{when}" for what in ("mean", "std", *(f"p({name})" for name in classes)) for when in WHEN}
    for name in settings.keep:
        if name in own:
            raise ConfigError(
                f"The answers have a column {name!r} of their own. Rename the one to keep, or leave it out."
            )


def _encoded(cohort: Cohort, rows: pd.DataFrame, first: int) -> np.ndarray:
    """(n, d) values of consecutive patients; what cannot be read is told with its row in the file, counted from 1."""
    try:
        return cohort.encode(rows)
    except FeatureError as problem:
        for number in range(len(rows)):
            try:
                cohort.encode(rows.iloc[number : number + 1])
            except FeatureError as error:
                raise CohortError(f"The patient of row {first + number + 1:,} cannot be read: {error}") from error
        raise CohortError(f"Patients from row {first + 1:,} on cannot be read: {problem}") from problem


def _table(rollout: Rollout, first: int, memory: CohortMemory, kept: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, object] = {"row": first + np.arange(len(rollout.actions)), **kept}
    names = np.array([*rollout.names, ""], dtype=object)
    for step in range(rollout.actions.shape[1]):
        columns[f"action_{step + 1}"] = names[rollout.actions[:, step]]
    for when, prediction in zip(WHEN, (rollout.predictions[0], rollout.predictions[-1]), strict=True):
        if isinstance(prediction, np.ndarray):
            columns |= {f"p({name})_{when}": prediction[:, k] for k, name in enumerate(memory.classes)}
        else:
            columns |= {f"mean_{when}": prediction.mean, f"std_{when}": prediction.std}
    return pd.DataFrame(columns | {"cost": list(map(_cost_text, rollout.cost[:, -1].tolist()))})


def _cost_text(cost: float) -> str:
    """A whole one to the last digit, where numbers of the file have six of them; of others what 32 bits hold."""
    return number_text(cost if cost == round(cost) else float(f"{cost:.7g}"))


def chunk_jobs(
    settings: AcquireSettings, patients: PatientsFile, chunk: int, parts: Path, council: str
) -> Iterator[ChunkJob]:
    """Cells as the file has them, so that a chunk is read by the cohort's rules and not by guesses from the chunk alone."""
    rows, first = patients.rows(), 0
    for number in itertools.count():
        piece = list(itertools.islice(rows, chunk))
        if not piece:
            return
        frame = pd.DataFrame(piece, columns=patients.header, dtype=object)
        yield ChunkJob(number, first, frame, settings, parts / f"chunk-{number:08d}.csv", council)
        first += len(piece)


def _read_context(settings: AcquireSettings) -> Cohort:
    try:
        return Cohort.from_file(
            settings.cohort,
            settings.outcome or None,
            baseline=settings.baseline,
            schema=settings.schema or None,
            **settings.reading.keywords(),
        )
    except CohortError as error:  # the patients are in a file too
        raise CohortError(f"The cohort {Path(settings.cohort).name} cannot be read: {error}") from error


@lru_cache(maxsize=1)
def _memory(settings: AcquireSettings, council: str) -> CohortMemory:
    plain = json.loads(council)
    with _quietly():
        recipe = False if plain is None else Recipe.from_data(plain)
        return load(settings.model).condition(_read_context(settings), council=recipe)


def _council(settings: AcquireSettings, cohort: Cohort, parts: Path, say: Callable[[str], None]) -> str:
    """The recipe of the cohort's council, as JSON. It is found once: every worker, and a run that goes on, has the same."""
    if not settings.council:
        return "null"
    kept = parts / "council.json"
    if not kept.is_file():
        with _quietly():
            recipe = load(settings.model).condition(cohort, council=True, rank=False).recipe
        with _written_whole(kept) as draft:
            draft.write_text("null" if recipe is None else json.dumps(recipe.to_data()))
    found = json.loads(kept.read_text())
    say("council: " + (Recipe.from_data(found).in_words if found else "the model is heard alone"))
    return kept.read_text()


@contextmanager
def _quietly() -> Iterator[None]:
    """Of warnings, only those on where it is computed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DeviceWarning)
        yield


def identity(settings: AcquireSettings, patients: Path, chunk: int) -> str:
    """A hash of all that a run's parts depend on; parts with another one are not used."""
    if not patients.is_file():
        raise CohortError(f"There is no file {patients.name} with patients.")
    digest = hashlib.sha256(repr((settings, chunk, patients.stat().st_size, patients.stat().st_mtime_ns)).encode())
    cohort = Path(settings.cohort)
    if not cohort.is_file():
        raise CohortError(f"There is no file {cohort.name} with a cohort.")
    schema = [Path(settings.schema)] if settings.schema else []
    for path in (find_model(settings.model) / FACTS, cohort, *schema):
        if not path.is_file():
            raise ConfigError(f"There is no file {path.name}.")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _open_parts(parts: Path, run_id: str) -> None:
    """Continues an unfinished run of the same work; parts of any other are removed."""
    stamp = parts / "run"
    if parts.exists() and not stamp.is_file():
        raise ConfigError(f"{parts.name} is in the way and is not an unfinished run; move it, or choose another --out.")
    if stamp.is_file() and stamp.read_text() != run_id:
        shutil.rmtree(parts)
    parts.mkdir(parents=True, exist_ok=True)
    try:
        stamp.write_text(run_id)
    except OSError:
        shutil.rmtree(parts)  # a folder without its stamp would be in the way of the next run
        raise


@contextmanager
def _written_whole(path: Path) -> Iterator[Path]:
    """A draft to write, which then takes its place; one that fails is removed, as it would fill a full disk further."""
    draft = path.with_name(path.name + ".partly")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise

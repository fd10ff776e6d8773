"""`python -m train acquire`: what to measure next for every patient of a file of any size, in chunks, side by side.

The patients are streamed: of a million rows only the chunks in work are in memory. A run that was cut short goes on
where it stopped: chunks are written as whole files and joined at the end.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from l2m_core.acquire.policies import POLICIES
from l2m_core.acquire.rollout import Rollout, roll_out
from l2m_core.acquire.stopping import Stopping
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, ConfigError
from l2m_core.memory import CohortMemory, load
from l2m_core.predictive import Predictive
from l2m_core.released import FACTS, find_model
from train.engines import ENGINES, fan_out


@dataclass(frozen=True)
class ChunkJob:
    """Some consecutive patients, and all that a worker needs to answer for them."""

    number: int
    first: int
    """Row number of the first patient, from 0."""
    rows: pd.DataFrame
    context: Context
    target: Path


@dataclass(frozen=True)
class Context:
    """The same for all chunks; workers condition once on it."""

    model: str
    cohort: str
    outcome: str
    baseline: tuple[str, ...]
    schema: str
    policy: str
    budget: int
    least_gain: float | None
    threads: int


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    context = Context(
        given.model, str(given.cohort), given.outcome or "", tuple(given.baseline), str(given.schema or ""),
        given.policy, given.budget, given.least_gain, given.threads,
    )  # fmt: skip
    start = time.perf_counter()
    patients = acquire(
        context, given.patients, given.out, chunk=given.chunk, engine=given.engine, workers=given.workers,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )  # fmt: skip
    print(f"{given.out}: {patients:,} patients in {time.perf_counter() - start:.0f} s")
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m train acquire", description=__doc__)
    parser.add_argument("--cohort", type=Path, required=True, help="CSV with known outcomes: the context")
    parser.add_argument("--outcome", help="the column to predict; not needed when the schema names it")
    parser.add_argument("--baseline", nargs="*", default=[], help="columns known from the start")
    parser.add_argument("--schema", type=Path, help="YAML schema of the cohort")
    parser.add_argument("--patients", type=Path, required=True, help="CSV of patients whose values may be asked for")
    parser.add_argument("--out", type=Path, required=True, help="CSV to write")
    parser.add_argument("--model", default="general")
    parser.add_argument("--policy", choices=sorted(POLICIES), default="gain")
    parser.add_argument("--budget", type=int, default=8)
    parser.add_argument("--least-gain", type=float, help="stop a patient when the best test promises less, in nats")
    parser.add_argument("--chunk", type=int, default=2000, help="patients in a piece of work")
    parser.add_argument("--engine", choices=ENGINES, default="processes")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    return parser.parse_args(arguments)


def acquire(context: Context, patients: Path, out: Path, *, chunk: int = 2000, engine: str = "processes",
            workers: int = 1, say=lambda text: None) -> int:  # fmt: skip
    """Writes `out` and returns the number of patients. Columns: row, action_1 …, the prediction before and after."""
    if chunk < 1:
        raise ConfigError(f"chunk is {chunk}; it must be at least 1.")
    parts = out.with_name(out.name + ".parts")
    _open_parts(parts, identity(context, patients, chunk))
    _read_context(context)  # refuses a cohort that cannot be used before anything is done
    total = 0
    jobs = (job for job in _jobs(context, patients, chunk, parts) if not job.target.is_file())
    for number, first in fan_out(answer_chunk, jobs, engine=engine, workers=workers, threads=context.threads):
        say(f"chunk {number + 1}: patients from row {first:,}")
    with _partly(out).open("w", encoding="utf-8", newline="") as file:
        for place, path in enumerate(sorted(parts.glob("chunk-*.csv"))):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            file.writelines(lines if place == 0 else lines[1:])
            total += len(lines) - 1
    _partly(out).replace(out)
    shutil.rmtree(parts)
    return total


def answer_chunk(job: ChunkJob) -> int:
    """Writes the chunk's file, whole or not at all; returns its first row's number."""
    memory = _memory(job.context)
    try:
        x = memory.cohort.encode(job.rows)
    except Exception as error:
        raise CohortError(f"Patients from row {job.first + 1:,} on cannot be read: {error}") from error
    stopping = None if job.context.least_gain is None else Stopping(least_gain=job.context.least_gain)
    rollout = roll_out(memory, x, budget=job.context.budget, policy=job.context.policy, stopping=stopping)
    _table(rollout, job.first, memory).to_csv(_partly(job.target), index=False, float_format="%.6g")
    _partly(job.target).replace(job.target)
    return job.first


def _table(rollout: Rollout, first: int, memory: CohortMemory) -> pd.DataFrame:
    columns: dict[str, object] = {"row": first + np.arange(len(rollout.actions))}
    names = np.array([*rollout.names, ""], dtype=object)
    for step in range(rollout.actions.shape[1]):
        columns[f"action_{step + 1}"] = names[rollout.actions[:, step]]
    for when, prediction in (("before", rollout.predictions[0]), ("after", rollout.predictions[-1])):
        if isinstance(prediction, Predictive):
            columns |= {f"mean_{when}": prediction.mean, f"std_{when}": prediction.std}
        else:
            columns |= {f"p({name})_{when}": prediction[:, k] for k, name in enumerate(memory.classes)}
    return pd.DataFrame(columns | {"cost": rollout.cost[:, -1]})


def _jobs(context: Context, patients: Path, chunk: int, parts: Path) -> Iterator[ChunkJob]:
    """As texts, so that a chunk is read by the cohort's rules and not by guesses from the chunk alone."""
    if not patients.is_file():
        raise CohortError(f"There is no file {patients.name} with patients.")
    first = 0
    read = pd.read_csv(patients, chunksize=chunk, dtype=str, keep_default_na=False)
    for number, rows in enumerate(read):
        yield ChunkJob(number, first, rows.reset_index(drop=True), context, parts / f"chunk-{number:08d}.csv")
        first += len(rows)


def _read_context(context: Context) -> Cohort:
    return Cohort.from_csv(
        context.cohort, outcome=context.outcome or None, baseline=context.baseline, schema=context.schema or None
    )


@lru_cache(maxsize=1)
def _memory(context: Context) -> CohortMemory:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load(context.model).condition(_read_context(context))


def identity(context: Context, patients: Path, chunk: int) -> str:
    """What the parts of a run depend on; other parts are not gone on with."""
    if not patients.is_file():
        raise CohortError(f"There is no file {patients.name} with patients.")
    digest = hashlib.sha256(repr((context, chunk, patients.stat().st_size, patients.stat().st_mtime_ns)).encode())
    digest.update((find_model(context.model) / FACTS).read_bytes())
    cohort = Path(context.cohort)
    if not cohort.is_file():
        raise CohortError(f"There is no file {cohort.name} with a cohort.")
    digest.update(cohort.read_bytes())
    return digest.hexdigest()


def _open_parts(parts: Path, mark: str) -> None:
    """An unfinished run of the very same work is gone on with; any other is started afresh."""
    stamp = parts / "run"
    if parts.exists() and not stamp.is_file():
        raise ConfigError(f"{parts.name} is in the way and is not an unfinished run; move it, or choose another --out.")
    if stamp.is_file() and stamp.read_text() != mark:
        shutil.rmtree(parts)
    parts.mkdir(parents=True, exist_ok=True)
    stamp.write_text(mark)


def _partly(path: Path) -> Path:
    return path.with_name(path.name + ".partly")

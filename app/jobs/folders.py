"""The folder of a job: its log, bounded and fit to be shown, and its working files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

LOG = "log.txt"
COHORT, SCHEMA = "cohort.parquet", "schema.yaml"
WHILE_IT_RUNS = (COHORT, SCHEMA)  # laid out for a trainer
OF_PATIENTS = (*WHILE_IT_RUNS, "fold-*.npz", ".fold-*.npz")  # all that a job keeps of a cohort's patients
LARGEST_LOG = 4_000_000  # bytes; beyond it the older half is dropped
TAIL = 16_000  # bytes read for the page
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_REFUSAL = re.compile(r"(?:^|: )error: (.*)")
_FAULT = re.compile(r"^\s*(Traceback \(most recent call last\)|During handling of|The above exception was)")


def folder_of(jobs_dir: Path, job_id: str) -> Path:
    return jobs_dir / job_id


def delete(folder: Path, patterns: Iterable[str]) -> None:
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def tail(folder: Path, lines: int = 40) -> str:
    """The last lines of the log as a person reads them: progress bars by their last state, faults without their stack."""
    try:
        with (folder / LOG).open("rb") as file:
            file.seek(0, 2)
            size = file.tell()
            file.seek(max(0, size - TAIL))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    if size > TAIL:
        text = text.partition("\n")[2] or text
    # A progress bar overwrites itself from carriage return to carriage return.
    overwritten = [line.rstrip("\r").rpartition("\r")[2] for line in _ESCAPES.sub("", text).split("\n")]
    return "\n".join([line.rstrip() for line in _without_stacks(overwritten) if line.strip()][-lines:])


def last_words(folder: Path) -> str:
    """What a command said last when it refused."""
    return refusal(tail(folder, 400))


def refusal(text: str) -> str:
    """The words after the last `error: `, from a trainer or from its command line."""
    found = [match[1] for line in text.splitlines() if (match := _REFUSAL.search(line))]
    return found[-1].strip() if found else ""


def trim(folder: Path) -> None:
    """Drop the older half of a log that has grown too large. Its writer appends, so it goes on at the new end."""
    path = folder / LOG
    try:
        if path.stat().st_size <= LARGEST_LOG:
            return
        with path.open("r+b") as file:
            file.seek(-LARGEST_LOG // 2, 2)
            kept = file.read().partition(b"\n")[2]
            file.seek(0)
            file.write(b"(earlier lines were dropped)\n" + kept)
            file.truncate()
    except OSError:
        return


def _without_stacks(lines: list[str]) -> list[str]:
    kept, inside = [], False
    for line in lines:
        if _FAULT.match(line):
            inside = True
        elif inside and line and not line[0].isspace():
            inside = False  # the line that names the error, whose words may quote values
            kept.append(f"The program stopped ({line.partition(':')[0].strip()}); details are in the job's log file.")
        elif not inside:
            kept.append(line)
    return kept

"""How many tasks each comparison of an experiment needs: stated by its first tasks, before the others are run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FIRST = 8
"""Tasks of each family by which the scatter is judged."""


@dataclass(frozen=True)
class Need:
    """Of one comparison: how many independent units show the smallest effect worth seeing four times in five."""

    what: str
    effect: float
    units: int

    def __str__(self) -> str:
        return f"{self.what}: {self.effect:g} takes about {self.units:,}"


def task_number(part: Any) -> int | None:
    """Of a job's part, which names a family and a task; None where a job is of a whole family."""
    number = getattr(part, "index", None)
    if isinstance(part, tuple) and len(part) > 1:
        number = part[1]
    return number if isinstance(number, int) else None


def first_jobs(parts: Sequence[Any]) -> list[int]:
    """Positions of the jobs of the first tasks; none where any job is of a whole family."""
    numbers = [task_number(part) for part in parts]
    if None in numbers:
        return []
    return [place for place, number in enumerate(numbers) if number is not None and number < FIRST]


def mark_of(marks: Sequence[dict[str, str]]) -> dict[str, str]:
    """Under which the statement is kept: of the first jobs alone, so that later tasks do not change what was stated, and of
    their data."""
    text = "".join(f"{mark['job']} {mark['version']}\n" for mark in marks)
    data = "; ".join(dict.fromkeys(mark["data"] for mark in marks if mark["data"]))
    return {"job": "(power)", "version": hashlib.sha256(text.encode()).hexdigest()[:16], "data": data}


def statement(needs: Sequence[Need], families: Sequence[Any], *, by_first: bool, before: bool) -> str:
    """For the page: needs of each comparison, and what is planned."""
    if not by_first:
        when = "By all tasks, after the run, since whole families are run at once"
    elif before:
        when = f"Stated by the first {FIRST} tasks of each family, before the others were run"
    else:
        when = f"By the first {FIRST} tasks of each family; the others, if any, had been run before this was asked"
    told = "; ".join(map(str, needs)) or "too few pairs to tell how they scatter"
    planned = ", ".join(f"{family.name} {family.tasks}" for family in families)
    return (
        f"{when}. Tasks, or of real outcomes tables, that show the effect four times in five: {told}. Planned: {planned}"
        f"{' (of real outcomes, splits of one table)' if any(f.source == 'cohort' for f in families) else ''}."
    )

"""Figures that long checks measure, written to docs/results/reliability.md when `--write-figures` is given."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.prerequisites import REPOSITORY

PAGE = REPOSITORY / "docs" / "results" / "reliability.md"
HEAD = """# Measured reliability

Long checks of what must survive, each with its target, what was measured, when, and on what. `make reliability` runs them all
and writes this page; a check that was not run again keeps its line. Most have a short form in `make test`.

| check | target | measured | met | when and where |
| --- | --- | --- | --- | --- |
"""


# What the fixture `figure` gives: called with check, target, measured, met.
Keep = Callable[[str, str, str, bool], None]


@dataclass(frozen=True)
class Figure:
    check: str
    target: str
    measured: str
    met: bool
    where: str

    @property
    def key(self) -> str:
        """The check as the page has it: the same one measured again takes the place of its line."""
        return _cell(self.check)

    def line(self) -> str:
        cells = (self.check, self.target, self.measured, "yes" if self.met else "**no**", self.where)
        return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def read(page: Path = PAGE) -> dict[str, str]:
    """Check → its line, as the page has them."""
    text = page.read_text("utf-8") if page.exists() else ""
    return {
        m[1]: m[0] for m in re.finditer(r"^\| ([^|]+?) \|.*\|$", text, re.MULTILINE) if m[1] not in ("check", "---")
    }


def write(figures: list[Figure], page: Path = PAGE) -> None:
    lines = read(page) | {figure.key: figure.line() for figure in figures}
    draft = page.with_name(f".{page.name}.{os.getpid()}")
    draft.write_text(HEAD + "\n".join(lines[check] for check in sorted(lines)) + "\n", "utf-8")
    os.replace(draft, page)  # a run that is broken off leaves the lines of the others


def here() -> str:
    """When, and on what machine, in a line."""
    cpu = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.+)", cpu.read_text()) if cpu.exists() else []
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    name = names[0] if names else platform.processor() or platform.machine()
    return (
        f"{datetime.now(UTC):%Y-%m-%d}; {name}, {cores} of {os.cpu_count()} cores, load average "
        f"{os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
    )

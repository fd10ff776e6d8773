"""Real cohorts in a folder, described by its `manifest.yaml`: file, outcome, and which columns play which role."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError

MOST_FEATURES = 100
"""Wider tables are stress tests of reading, not cohorts to compare methods on."""


def default_data_folder() -> Path:
    """`shared/data` beside the repository."""
    return Path(__file__).resolve().parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Source:
    """One cohort of a manifest."""

    name: str
    path: Path
    outcome: str
    task: str
    """binary, multiclass or regression"""
    rows: int
    baseline: tuple[str, ...]
    acquirable: tuple[str, ...]
    positive: str | None = None
    costs: tuple[tuple[str, float], ...] = ()

    @property
    def continuous(self) -> bool:
        return self.task == "regression"

    def load(self) -> Cohort:
        """All rows; columns that the manifest gives no role are ignored."""
        return _load(self)


def read_manifest(folder: Path, include_wide: bool = False) -> list[Source]:
    """The CSV cohorts in the manifest's order."""
    path = Path(folder) / "manifest.yaml"
    if not path.is_file():
        raise ConfigError(
            f"There is no manifest.yaml in {folder}. Give --data FOLDER: a folder of CSV cohorts with a manifest that "
            f"names for each its file, outcome, task, baseline_columns and acquirable_columns."
        )
    entries = yaml.safe_load(path.read_text())["datasets"]
    csv = [e for e in entries if str(e.get("file", "")).endswith(".csv") and e.get("task") not in (None, "none")]
    sources = [_source(entry, path.parent) for entry in csv]
    return [s for s in sources if include_wide or len(s.baseline) + len(s.acquirable) <= MOST_FEATURES]


def _source(entry: dict, folder: Path) -> Source:
    positive = entry.get("positive_label")
    return Source(
        name=entry["name"],
        path=folder / entry["file"],
        outcome=entry["outcome"],
        task=entry["task"],
        rows=int(entry["rows"]),
        baseline=tuple(entry["baseline_columns"]),
        acquirable=tuple(entry["acquirable_columns"]),
        positive=None if positive is None else str(positive),
        costs=tuple((name, float(cost)) for name, cost in (entry.get("cost") or {}).items()),
    )


@lru_cache(maxsize=32)
def _load(source: Source) -> Cohort:
    return read_cohort(source)


def read_cohort(source: Source) -> Cohort:
    """As `Source.load`, from the file whether or not it has been read before."""
    with source.path.open(encoding="utf-8") as file:
        header = [name.strip().strip('"') for name in file.readline().rstrip("\r\n").split(",")]
    roles = {name: "baseline" for name in source.baseline} | {name: "acquirable" for name in source.acquirable}
    features = [{"name": name, "role": roles.get(name, "ignored")} for name in header if name != source.outcome]
    outcome = {"name": source.outcome}
    if source.continuous:
        outcome["kind"] = "continuous"
    return Cohort.from_csv(
        source.path,
        schema={"outcome": outcome, "features": features},
        positive=source.positive,
        costs=dict(source.costs),
        name=source.name,
    )

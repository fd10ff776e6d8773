"""Real cohorts in a folder, described by its `manifest.yaml`: file, outcome, and which columns play which role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, ConfigError, InputError
from l2m_core.paths import PACKAGE
from l2m_core.schema import did_you_mean
from l2m_core.tables.reading import read_table
from l2m_core.tables.table import Table

TASKS = ("binary", "multiclass", "regression", "continuous")
FORMAT = (
    "It is YAML: `datasets:` and under it a list, which gives of each cohort its name, file, outcome, task, baseline_columns and "
    "acquirable_columns; see docs/evaluation.md."
)
MOST_FEATURES = 100
"""Wider tables are stress tests of reading, not cohorts to compare methods on."""


def default_data_folder() -> Path:
    """`shared/data` beside the repository."""
    return PACKAGE.parent.parent / "shared" / "data"


@dataclass(frozen=True)
class Source:
    """One cohort of a manifest."""

    name: str
    path: Path
    outcome: str
    task: str
    """One of `TASKS`."""
    baseline: tuple[str, ...]
    acquirable: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    positive: str | None = None
    costs: tuple[tuple[str, float], ...] = ()

    @property
    def continuous(self) -> bool:
        return self.task in ("regression", "continuous")  # two names of the same

    @property
    def wide(self) -> bool:
        return len(self.baseline) + len(self.acquirable) > MOST_FEATURES

    @property
    def columns(self) -> list[tuple[str, str]]:
        """(key of the manifest, name) of each column that it gives a role."""
        keys = {
            "outcome": (self.outcome,),
            "baseline_columns": self.baseline,
            "acquirable_columns": self.acquirable,
            "ignored_columns": self.ignored,
        }
        return [(key, name) for key, names in keys.items() for name in names]

    def load(self) -> Cohort:
        """All rows that have an outcome; columns that the manifest gives no role are ignored."""
        return load_once(self)

    def read(self) -> Cohort:
        """As `load`, from the file whether or not it has been read before."""
        return read_cohort(self)


def read_manifest(folder: Path, include_wide: bool = False) -> list[Source]:
    """The CSV cohorts in the manifest's order."""
    path = Path(folder) / "manifest.yaml"
    if not path.is_file():
        raise ConfigError(
            f"There is no manifest.yaml in {folder}. Give --data FOLDER: a folder of CSV cohorts with a manifest. {FORMAT}"
        )
    csv = [e for e in _entries(path) if _file(e).endswith(".csv") and e.get("task") != "none"]
    sources = [_source(entry, path.parent) for entry in csv]
    for name, times in Counter(source.name for source in sources).items():
        if times > 1:
            raise ConfigError(f"manifest.yaml has {times} cohorts with the name '{name}'. Give each a name of its own.")
    return [s for s in sources if include_wide or not s.wide]


def _entries(path: Path) -> list[dict[str, Any]]:
    # Manifests that a program writes may have aliases, which settings that people write are refused for.
    try:
        manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {' '.join(str(error).split())}. {FORMAT}") from None
    entries = manifest.get("datasets") if isinstance(manifest, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"{path} has no list of cohorts under datasets. {FORMAT}")
    return entries


def _file(entry: dict[str, Any]) -> str:
    if entry.get("file") is None:
        raise ConfigError(f"manifest.yaml states no file for the cohort {entry.get('name', entry)!r}. Add it.")
    return str(entry["file"])


def _source(entry: dict[str, Any], folder: Path) -> Source:
    for key in ("name", "outcome", "task", "baseline_columns", "acquirable_columns"):
        if entry.get(key) is None:
            raise ConfigError(f"manifest.yaml states no {key} for the cohort of {entry['file']}. Add it.")
    name = str(entry["name"])
    if entry["task"] not in TASKS:
        raise ConfigError(
            f"Cohort '{name}': task is {entry['task']!r} in manifest.yaml; it must be one of {', '.join(TASKS)}."
        )
    cost = entry.get("cost") or {}
    if not isinstance(cost, dict) or not all(isinstance(value, int | float) for value in cost.values()):
        raise ConfigError(
            f"Cohort '{name}': cost is {cost!r} in manifest.yaml; it must be a number for each column's name."
        )
    positive = entry.get("positive_label")
    return Source(
        name=name,
        path=folder / entry["file"],
        outcome=str(entry["outcome"]),
        task=entry["task"],
        baseline=_names(entry, "baseline_columns"),
        acquirable=_names(entry, "acquirable_columns"),
        ignored=_names(entry, "ignored_columns"),
        positive=None if positive is None else str(positive),
        costs=tuple((str(column), float(value)) for column, value in cost.items()),
    )


def _names(entry: dict[str, Any], key: str) -> tuple[str, ...]:
    """Of columns."""
    names = entry.get(key) or []
    if not isinstance(names, list) or any(isinstance(name, list | dict) for name in names):
        raise ConfigError(
            f"Cohort '{entry['name']}': {key} is {names!r} in manifest.yaml; it must be a list of columns' names."
        )
    return tuple(map(str, names))


@lru_cache(maxsize=32)
def load_once(source: Source) -> Cohort:
    return read_cohort(source)


def read_cohort(source: Source) -> Cohort:
    with _naming_cohort(source):
        table = read_table(source.path, name=source.name)
    check_columns(source, table)
    roles = {name: "baseline" for name in source.baseline} | {name: "acquirable" for name in source.acquirable}
    features = [{"name": name, "role": roles.get(name, "ignored")} for name in table.names if name != source.outcome]
    outcome = {"name": source.outcome, "kind": "continuous" if source.continuous else source.task}
    with _naming_cohort(source):
        return Cohort.from_table(
            table,
            schema={"outcome": outcome, "features": features},
            positive=source.positive,
            costs=dict(source.costs),
        )


@contextmanager
def _naming_cohort(source: Source) -> Iterator[None]:
    """Within it, a refusal says which of the manifest's cohorts it is about."""
    try:
        yield
    except InputError as error:
        raise CohortError(f"Cohort '{source.name}', {source.path.name}: {error}") from error


def check_columns(source: Source, table: Table) -> None:
    """A name that is no column's would leave a column without its role, and with one that was never meant."""
    roles: dict[str, str] = {}
    for key, name in source.columns:
        if name not in table.names:
            raise ConfigError(
                f"Cohort '{source.name}': {source.path.name} has no column '{name}', which manifest.yaml has under {key}."
                f"{did_you_mean(name, table.names)} Correct the name there, or in the file's header."
            )
        if roles.setdefault(name, key) != key:
            raise ConfigError(
                f"Cohort '{source.name}': manifest.yaml has '{name}' under {roles[name]} and under {key}. Keep one."
            )

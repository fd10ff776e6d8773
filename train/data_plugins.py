"""Data sets of other packages: functions that give a cohort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from l2m_core import plugins
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError, type_of

Loader = Callable[[str], Cohort]
"""Takes a path: `prior.data.path`, or the folder of `--data`; may leave it unread."""


def find_loader(name: str) -> Loader | None:
    return plugins.find_plugin(plugins.DATA, name, callable, "a function that takes a path and gives a Cohort")


def offered_loaders() -> list[str]:
    return plugins.offered(plugins.DATA)


def load_with(name: str, path: str | Path) -> Cohort:
    """The cohort that the loader of this name gives."""
    loader = find_loader(name)
    assert loader is not None
    cohort = loader(str(path))
    if not isinstance(cohort, Cohort):
        raise ConfigError(f"The data set {name!r} gave {type_of(cohort)}; it must give an l2m_core.Cohort.")
    return cohort


@dataclass(frozen=True)
class PluggedSource:
    """Such a data set as a cohort of the evaluation."""

    name: str
    folder: Path
    wide: bool = False
    """It was asked for by its name, however wide it is."""

    def load(self) -> Cohort:
        return _load(self.name, self.folder)

    def read(self) -> Cohort:
        """As `load`, whether or not it has been read before."""
        return load_with(self.name, self.folder)


@lru_cache(maxsize=8)
def _load(name: str, folder: Path) -> Cohort:
    return load_with(name, folder)

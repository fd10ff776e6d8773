"""The paper's tables and figures as published: `published.yaml`, read into records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from l2m_core.settings import build_settings, read_settings

FILE = Path(__file__).parent / "published.yaml"


@dataclass(frozen=True)
class PublishedTable:
    """A table, or with number 0 a sentence of the text that states a measured number."""

    name: str
    place: str
    caption: str
    """Of a table; else the sentence."""
    theirs: str
    """The scale at which its numbers were made, as far as the paper states it."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Cells as written in the paper; a row's first cell is its name."""
    number: int = 0
    label: str = ""


@dataclass(frozen=True)
class PublishedFigure:
    """A figure; its numbers are not published."""

    name: str
    number: int
    place: str
    caption: str
    """Its first sentence."""
    label: str = ""
    theirs: str = ""
    measured: bool = True
    """Whether it shows results; else it explains something."""


@dataclass(frozen=True)
class Published:
    """All of it, in the paper's order."""

    tables: tuple[PublishedTable, ...]
    text: tuple[PublishedTable, ...]
    figures: tuple[PublishedFigure, ...]


def read_published(file: Path = FILE) -> Published:
    return build_settings(Published, read_settings(file), file.name)

"""Recipes of councils that this installation has found, so that no other process, and no later start, finds them again.

Finding a council's weights has the model read the cohort's parts anew, which takes several times as long as reading the cohort;
fitting the members of a known recipe takes a moment. Recipes lie in a folder, one file for each cohort's content and model:
weights and versions, and nothing of a patient.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.file_lock import locked
from l2m_core import __version__
from l2m_core.council.council import Recipe
from l2m_core.errors import InputError

PATIENCE = 600  # seconds that a process waits for others before it goes on beside them
LOCK = "finding.lock"

logger = logging.getLogger("l2m.app")

Content = tuple[str, str]  # (a model's fingerprint, a cohort's content hash)


class FoundCouncils:
    """The recipes in one folder, which processes share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def turn(self, go_on: Callable[[], None]) -> Iterator[None]:
        """While one process finds a council, others wait: they leave it the processor, and then may know its recipe.

        go_on: is called now and then while this waits, and may end that by raising.
        """
        try:
            file = (self._folder / LOCK).open("a+b")
        except OSError as error:
            logger.warning("Councils are found without waiting for other processes (%s).", error.strerror)
            yield
            return
        with file:
            for _ in range(PATIENCE):
                go_on()
                with locked(file, patience=1) as mine:
                    if mine:
                        yield
                        return
            yield

    def known(self, content: Content) -> Recipe | None:
        """None where none is kept that can be read."""
        try:
            return Recipe.from_data(json.loads(self._file(content).read_text("utf-8")))
        except (OSError, ValueError, InputError):  # none, or a damaged one, which is found again
            return None

    def keep(self, content: Content, recipe: Recipe) -> None:
        file = self._file(content)
        draft = file.with_suffix(f".{os.getpid()}.draft")
        try:
            draft.write_text(json.dumps(recipe.to_data()), "utf-8")
            draft.replace(file)
        except OSError as error:
            logger.warning("The recipe of a council could not be kept (%s).", error.strerror)

    def contents(self) -> frozenset[str]:
        """The hashes of cohorts' contents of which anything is kept."""
        return frozenset(map(_content_hash, self._files()))

    def drop(self, content_hashes: Collection[str]) -> None:
        """Whatever is kept of these contents."""
        for path in self._files():
            if _content_hash(path) in content_hashes:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """Of all contents, drafts that a killed process left among them."""
        return list(self._folder.glob("*-*"))

    def _file(self, content: Content) -> Path:
        """Another version of the program may find other weights, and so has files of its own."""
        fingerprint, content_hash = content
        return self._folder / f"{content_hash}-{fingerprint[:16]}-{__version__}.json"


def _content_hash(file: Path) -> str:
    return file.name.partition("-")[0]

"""Places: where the released models are, and where a command may write, which is looked at before hours of work."""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from l2m_core.errors import ConfigError

PACKAGE = Path(__file__).resolve().parent


def pretrained_dir() -> Path:
    """The folder that holds one folder per released model.

    In a checkout that is `pretrained/` beside the package; a wheel carries the same folder inside the package.
    """
    packaged = PACKAGE / "_pretrained"
    return packaged if packaged.is_dir() else PACKAGE.parent / "pretrained"


def model_folders() -> dict[str, Path]:
    """Name to folder of every released model, in the order of their names."""
    return _models_in(pretrained_dir())


def earlier_folders() -> dict[str, Path]:
    """The same of releases that were replaced: nobody is offered one, and what was made with it still replays."""
    return _models_in(pretrained_dir() / "earlier")


def study_folders() -> dict[str, Path]:
    """The same of the study's own models: for its experiments, each for tasks like those that it was trained on."""
    return _models_in(pretrained_dir() / "study")


def all_folders() -> dict[str, Path]:
    """Every model that opens by its name, those that are offered first."""
    return model_folders() | earlier_folders() | study_folders()


def is_released(name: str) -> bool:
    """Whether it is the name of a released model, offered or not."""
    return name in all_folders()


def _models_in(parent: Path) -> dict[str, Path]:
    folders = (weights.parent for weights in sorted(parent.glob("*/*.safetensors")))
    return {folder.name: folder for folder in folders if not folder.name.startswith(".")}  # hidden: being written


# -- to write to -----------------------------------------------------------------------------------------------------


def file_to_write(text: str) -> Path:
    """The type of an option that names a file to write; folders on the way to it are made when it is written."""
    path = Path(text)
    return _as_option(lambda: check_file(path), path)


def folder_to_write(text: str) -> Path:
    """The type of an option that names a folder to write into, which need not be there."""
    path = Path(text)
    return _as_option(lambda: _check_way_to(path), path)


def check_file(out: Path, read: Iterable[Path | str] = (), option: str = "--out") -> None:
    """A file can be written there, and it takes the place of nothing that is read."""
    if out.is_dir():
        raise ConfigError(f"{out} is a folder. Name a file in it.")
    # What is written takes the place of what has the name, which must not be a device, nor the system's name for one.
    if (out.exists() and not out.is_file()) or out.absolute().parent == Path("/dev"):
        raise ConfigError(f"{out} is no file but a device or a pipe. Name a file.")
    for path in map(Path, read):
        if out.resolve() == path.resolve():
            raise ConfigError(f"{option} would take the place of {path.name}, which is read. Choose another {option}.")
    _check_way_to(out.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within it, an error of the system names this path, as of a full disk: one that a write raises names no file."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _check_way_to(folder: Path) -> None:
    existing = next(part for part in (folder, *folder.absolute().parents) if part.exists())
    if not existing.is_dir():
        raise ConfigError(f"{existing} is a file, so there can be no folder of that name.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError(f"Nothing may be written to {existing}. Name another place.")


def _as_option(check: Callable[[], None], path: Path) -> Path:
    """The path; what the check refuses is told as argparse tells of an option."""
    try:
        check()
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return path

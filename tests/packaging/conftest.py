"""A copy of the project's scripts, and a PATH that has little else, for the tests that run them."""

import shutil
from pathlib import Path

import pytest

from tests.prerequisites import REPOSITORY

# What the scripts themselves call; everything else is left out of the PATH of these tests.
TOOLS = ("bash", "cat", "dirname", "env", "id", "rm", "mkdir", "grep", "timeout")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder to be the whole PATH, with the few tools that the scripts need and no Python."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the files that set-up reads, in a folder with a space in its name."""
    folder = tmp_path / "my project"
    shutil.copytree(REPOSITORY / "scripts", folder / "scripts")
    for name in ("pyproject.toml", "constraints.txt", "Makefile"):
        shutil.copy(REPOSITORY / name, folder)
    return folder

"""What a wheel carries: all of three packages, the released models and the licence; nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from l2m_core import __version__
from tests.prerequisites import REPOSITORY


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def tracked(folder: str) -> list[str]:
    """The files of a folder that are part of the project."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("not a git checkout, so there is no list of the project's files")
    listed = subprocess.check_output(["git", "ls-files", "-z", folder], cwd=REPOSITORY, text=True)
    return [name for name in listed.split("\0") if name and (REPOSITORY / name).exists()]


@pytest.mark.parametrize("package", ["app", "l2m_core", "train"])
def test_every_file_of_a_package_is_in_the_wheel(names: set[str], package: str) -> None:
    assert [name for name in tracked(package) if name not in names] == []


def test_every_released_model_is_in_the_wheel(names: set[str]) -> None:
    expected = [name.replace("pretrained/", "l2m_core/_pretrained/", 1) for name in tracked("pretrained")]
    assert expected and [name for name in expected if name not in names] == []


def test_the_wheel_holds_nothing_else(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert tops == {"app", "l2m_core", "train", f"learning_to_measure-{__version__}.dist-info"}
    assert not [name for name in names if name.endswith((".pyc", ".sqlite3", ".env"))]


def test_the_wheel_gives_the_console_command_and_the_licence(wheel: Path, names: set[str]) -> None:
    (points,) = [name for name in names if name.endswith("entry_points.txt")]
    assert [name for name in names if name.endswith("licenses/LICENSE")]
    with zipfile.ZipFile(wheel) as archive:
        assert "l2m = l2m_core.cli:main" in archive.read(points).decode()

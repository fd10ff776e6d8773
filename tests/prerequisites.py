"""What some tests need beside Python packages. Where it is missing they skip, saying how to get it; in CI they fail."""

import os
import shutil
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED_DATA = REPOSITORY.parent / "shared" / "data"
SHARED_STUDY = REPOSITORY.parent / "shared" / "study"


def require(found: object, message: str) -> None:
    """Skip the running test with the message unless `found` is true; fail it in CI, where nothing may be missing."""
    if found:
        return
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{message} (required in CI)", pytrace=False)
    pytest.skip(message)


def find_chromium() -> Path | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    return Path(found) if found else None


def find_postgres() -> Path | None:
    """The folder of PostgreSQL's server programs, newest release first; Debian keeps them off the PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3]))
    if installed:
        return installed[-1].parent
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def chromium() -> Path:
    path = find_chromium()
    require(path, "Chromium is not installed; Debian, Ubuntu: apt-get install chromium")
    assert path is not None
    return path


def postgres() -> Path:
    path = find_postgres()
    require(path, "PostgreSQL's server is not installed; Debian, Ubuntu: apt-get install postgresql")
    assert path is not None
    return path


def c_compiler() -> str:
    if sys.platform != "linux":
        pytest.skip("what stands between SQLite and the system is written for Linux")
    found = shutil.which("cc")
    require(found, "No C compiler is installed; Debian, Ubuntu: apt-get install gcc libc6-dev")
    assert found is not None
    return found


def shared_data() -> Path:
    """The real cohorts. They are no part of the project, so their absence is never a failure."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the shared cohorts are not beside the repository (expected in {SHARED_DATA})")
    return SHARED_DATA


def tables_of_r() -> Path:
    """The folder of data with the collection Rdatasets in it. It is no part of the project, so its absence is never a failure."""
    if not (SHARED_DATA / "Rdatasets").is_dir():
        pytest.skip(
            f"no tables of R: git clone --depth 1 https://github.com/vincentarelbundock/Rdatasets in {SHARED_DATA}"
        )
    return SHARED_DATA


def study_source() -> str:
    """The paper's LaTeX. It is no part of the project, so its absence is never a failure."""
    files = sorted(SHARED_STUDY.glob("*")) if SHARED_STUDY.is_dir() else []
    texts = [file.read_text("utf-8") for file in files if file.suffix in (".tex", ".txt")]
    if not texts:
        pytest.skip(f"the paper's source is not beside the repository (expected in {SHARED_STUDY})")
    return "\n".join(texts)

"""The scripts behind `make run` and `make test`: quick when nothing changed, and clear when something is missing."""

import os
import sys
import time
from pathlib import Path

import pytest

from tests.figures import Keep
from tests.packaging.run_scripts import add_program, python_that_installs, run
from tests.prerequisites import REPOSITORY

SCRIPTS = ("setup", "torch-build", "run", "test", "lint", "types", "check_wheel", "system-packages")


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_can_be_run(name: str) -> None:
    assert os.access(REPOSITORY / "scripts" / name, os.X_OK)


def test_no_python_is_named_with_its_remedy(project: Path, programs: Path) -> None:
    answer = run(project, programs, "setup")
    assert answer.returncode == 1
    assert "Python 3.11 or newer was not found" in answer.stderr
    assert "apt-get install python3" in answer.stderr


def test_a_python_that_is_too_old_is_passed_over(project: Path, programs: Path) -> None:
    add_program(programs, "python3", 'if [ "$1" = --version ]; then echo Python 3.9.2; else exit 1; fi')
    answer = run(project, programs, "setup")
    assert answer.returncode == 1
    assert "python3 says: Python 3.9.2" in answer.stderr


def test_a_newer_python_is_found_beside_an_old_one(project: Path, programs: Path) -> None:
    python_that_installs(programs)
    (programs / "python3").rename(programs / "python3.12")
    add_program(programs, "python3", "exit 1")
    assert run(project, programs, "setup").returncode == 0


def test_a_chosen_python_that_cannot_be_used_is_named(project: Path, programs: Path) -> None:
    answer = run(project, programs, "setup", PYTHON="/nowhere/python3")
    assert answer.returncode == 1
    assert "PYTHON=/nowhere/python3" in answer.stderr


def test_a_python_without_venv_is_named_with_its_remedy(project: Path, programs: Path) -> None:
    add_program(programs, "python3", f'case "$*" in *ensurepip*) exit 1 ;; *) exec {sys.executable} "$@" ;; esac')
    answer = run(project, programs, "setup")
    assert answer.returncode == 1
    assert "no 'venv' module" in answer.stderr and "apt-get install python3-venv" in answer.stderr


def test_an_unknown_profile_is_refused(project: Path, programs: Path) -> None:
    answer = run(project, programs, "setup", "everything")
    assert answer.returncode == 1
    assert "'everything'" in answer.stderr and "scripts/setup test" in answer.stderr


def test_packages_are_installed_with_their_exact_versions(project: Path, programs: Path) -> None:
    python_that_installs(programs)
    assert run(project, programs, "setup", "test").returncode == 0
    (line,) = (project / "record").read_text().splitlines()
    assert line.startswith("constraints.txt ") and line.endswith("--editable .[test]")


def test_setting_up_again_does_nothing(project: Path, programs: Path) -> None:
    python_that_installs(programs)
    run(project, programs, "setup", "test")
    # What the tests need holds all that the app needs.
    again = [run(project, programs, "setup", profile) for profile in ("test", "app")]
    assert [answer.stdout for answer in again] == ["", ""]
    assert len((project / "record").read_text().splitlines()) == 1


@pytest.mark.reliability
def test_setting_up_again_is_quick(project: Path, programs: Path, figure: Keep) -> None:
    python_that_installs(programs)
    run(project, programs, "setup", "test")
    started = time.monotonic()
    for profile in ("test", "app"):
        assert run(project, programs, "setup", profile).returncode == 0
    seconds = time.monotonic() - started
    figure("set-up: run again for two profiles, nothing to do", "< 10 s", f"{seconds:.2f} s", seconds < 10)
    assert seconds < 10


def test_the_test_profile_is_added_to_the_app_profile(project: Path, programs: Path) -> None:
    python_that_installs(programs)
    run(project, programs, "setup", "app")
    run(project, programs, "setup", "test")
    assert len((project / "record").read_text().splitlines()) == 2


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_a_changed_list_of_packages_is_installed(project: Path, programs: Path, changed: str) -> None:
    python_that_installs(programs)
    run(project, programs, "setup")
    with (project / changed).open("a") as file:
        file.write("\n# one more line\n")
    run(project, programs, "setup")
    assert len((project / "record").read_text().splitlines()) == 2


def test_a_failed_installation_is_named_and_tried_again(project: Path, programs: Path) -> None:
    python_that_installs(programs)
    (project / "fail").touch()
    answer = run(project, programs, "setup")
    assert answer.returncode == 1
    assert "pip could not install" in answer.stderr
    (project / "fail").unlink()
    assert run(project, programs, "setup").returncode == 0
    assert len((project / "record").read_text().splitlines()) == 2


def test_setting_up_says_its_steps_and_what_is_large(project: Path, programs: Path) -> None:
    python_that_installs(programs)
    (project / "said").write_text(
        "Obtaining file:///somewhere\n  Downloading tqdm-4.0-py3-none-any.whl (78 kB)\n"
        "  Downloading nvidia_cudnn_cu13-9.20.0.48-py3-none-manylinux_2_27_x86_64.whl (366.2 MB)\n"
        "  Downloading https://download.pytorch.org/whl/cpu/torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl (191.8 MB)\n"
        "Installing collected packages: tqdm, nvidia-cudnn-cu13\n"
    )
    lines = run(project, programs, "setup").stdout.splitlines()
    assert [line.split(":")[1].strip() for line in lines if " of 3" in line] == ["1 of 3", "2 of 3", "3 of 3"]
    assert "setup:     downloading nvidia_cudnn_cu13 9.20.0.48 (366.2 MB)" in lines
    assert "setup:     downloading torch 2.13.0+cpu (191.8 MB)" in lines
    assert "setup:     unpacking all of it" in lines and lines[-1].startswith("setup: done, after ")
    assert not any("tqdm" in line or "Obtaining" in line for line in lines)


def test_missing_programs_are_named_where_they_cannot_be_installed(project: Path, programs: Path) -> None:
    # The system's own folders are searched for PostgreSQL, so only the browser is sure to be missing here.
    answer = run(project, programs, "system-packages")
    assert answer.returncode == 0
    assert "not found: chromium" in answer.stdout
    assert "skipped" in answer.stdout


def test_missing_programs_are_installed_where_that_needs_no_question(project: Path, programs: Path) -> None:
    add_program(programs, "id", "echo 0")
    add_program(programs, "true", "exit 0")
    add_program(programs, "apt-get", f'echo "$*" >> "{project}/record"')
    assert run(project, programs, "system-packages").returncode == 0
    update, install = (project / "record").read_text().splitlines()
    assert update.startswith("update") and install.startswith("install") and "chromium" in install


def test_every_make_target_runs_a_script_that_exists() -> None:
    recipes = [line.strip() for line in (REPOSITORY / "Makefile").read_text().splitlines() if line.startswith("\t")]
    called = [line.split()[0] for line in recipes if line.startswith("scripts/")]
    assert {"scripts/run", "scripts/test"} <= set(called)
    assert all((REPOSITORY / script).is_file() for script in called)


def test_ci_checks_style_types_the_wheel_and_the_readmes_test_command() -> None:
    text = (REPOSITORY / ".ci" / "run").read_text()
    for command in ("scripts/lint", "scripts/types", "scripts/check_wheel", "make test"):
        assert command in text
    assert os.access(REPOSITORY / ".ci" / "run", os.X_OK)

"""The scripts behind `make run` and `make test`: quick when nothing changed, and clear when something is missing."""

import functools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.figures import Keep
from tests.packaging.metadata import pins
from tests.prerequisites import REPOSITORY

SCRIPTS = ("setup", "torch-build", "run", "test", "lint", "types", "check_wheel", "system-packages")

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


def add_program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text("#!/usr/bin/env bash\n" + text)
    file.chmod(0o755)


def run(project: Path, programs: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    script, *options = words
    return subprocess.run(
        [str(project / "scripts" / script), *options],
        env={"PATH": str(programs), "HOME": str(project), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def python_that_installs(programs: Path) -> None:
    """A stand-in for the interpreter and its pip, which leaves what an installation leaves, and keeps a record.

    Its pip has no settings of its own and finds no CPU build, unless the files `settings` and `offered` say otherwise.
    """
    text = f"""
case "$*" in
    *"-m venv"*)
        mkdir -p "${{@: -1}}/bin"
        cat "$0" > "${{@: -1}}/bin/python"
        {shutil.which("chmod")} +x "${{@: -1}}/bin/python" ;;
    *"-m pip config list"*) if [ -e settings ]; then cat settings; fi ;;
    *"-m pip index versions torch"*) if [ -e offered ]; then cat offered; else exit 1; fi ;;
    *"-m pip"*)
        if [ -e said ]; then cat said; fi
        echo "$PIP_CONSTRAINT $*" >> record
        if [ -e fail ]; then exit 1; fi
        cat "$0" > .venv/bin/l2m
        {shutil.which("chmod")} +x .venv/bin/l2m ;;
    *) exec {sys.executable} "$@" ;;
esac
"""
    add_program(programs, "python3", text)


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


# -- which build of PyTorch -------------------------------------------------------------------------------------------

PINNED = pins()["torch"]
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CPU_WORDS = f"--index-url {CPU_INDEX} torch=={PINNED}+cpu"


@pytest.fixture
def plain(project: Path, programs: Path) -> Path:
    """The project with an environment whose pip has no settings, on Linux without an NVIDIA GPU."""
    python_that_installs(programs)
    (programs / "nvidia-smi").write_text("")  # not a program that can be run, so a real one is not found either
    (project / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(programs / "python3", project / ".venv" / "bin" / "python")
    (project / "devices").mkdir()
    return project


def choose(project: Path, programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(project, programs, "torch-build", ".venv", "devices", **{"OSTYPE": "linux-gnu", **variables})


def offer(project: Path, *versions: str) -> None:
    (project / "offered").write_text(f"torch ({versions[0]})\nAvailable versions: {', '.join(versions)}\n")


def test_a_machine_without_a_gpu_gets_the_cpu_build(plain: Path, programs: Path) -> None:
    offer(plain, "99.0+cpu", f"{PINNED}+cpu")
    answer = choose(plain, programs)
    assert (answer.returncode, answer.stdout) == (0, CPU_WORDS + "\n")
    assert "CPU build" in answer.stderr and "GB on disk" in answer.stderr and "no NVIDIA GPU" in answer.stderr


@pytest.mark.parametrize("offered", [(), ("2.6.0+cpu",), (PINNED,)])
def test_without_the_cpu_build_the_ordinary_index_serves(plain: Path, programs: Path, offered: tuple[str, ...]) -> None:
    if offered:
        offer(plain, *offered)
    answer = choose(plain, programs)
    assert (answer.returncode, answer.stdout) == (0, "")
    assert "CUDA build" in answer.stderr and CPU_INDEX in answer.stderr and "L2M_TORCH=cpu" in answer.stderr


@pytest.mark.parametrize("sign", ["device", "program"])
def test_a_machine_with_a_gpu_gets_the_cuda_build(plain: Path, programs: Path, sign: str) -> None:
    offer(plain, f"{PINNED}+cpu")
    if sign == "device":
        (plain / "devices" / "nvidia0").touch()
    else:
        add_program(programs, "nvidia-smi", "echo 'GPU 0: NVIDIA H200'")
    answer = choose(plain, programs)
    assert (answer.returncode, answer.stdout) == (0, "")
    assert "CUDA build" in answer.stderr and "has an NVIDIA GPU" in answer.stderr


def test_a_program_that_finds_no_gpu_is_no_gpu(plain: Path, programs: Path) -> None:
    offer(plain, f"{PINNED}+cpu")
    add_program(programs, "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    assert choose(plain, programs).stdout == CPU_WORDS + "\n"


@pytest.mark.parametrize(
    "setting", ["global.find-links", ":env:.index-url", "user.extra-index-url", "install.no-index"]
)
def test_pips_own_settings_come_first(plain: Path, programs: Path, setting: str) -> None:
    offer(plain, f"{PINNED}+cpu")
    (plain / "settings").write_text(f"global.timeout='9'\n{setting}='https://name:secret@somewhere'\n")
    answer = choose(plain, programs)
    assert (answer.returncode, answer.stdout) == (0, "")
    assert f"({setting.rpartition('.')[2]})" in answer.stderr and "secret" not in answer.stderr


def test_settings_of_pip_that_name_no_place_change_nothing(plain: Path, programs: Path) -> None:
    offer(plain, f"{PINNED}+cpu")
    (plain / "settings").write_text("global.cert='/etc/ssl/index-url.crt'\nglobal.timeout='9'\n")
    assert choose(plain, programs).stdout == CPU_WORDS + "\n"


def test_a_build_that_is_installed_stays_until_another_is_asked_for(plain: Path, programs: Path) -> None:
    offer(plain, f"{PINNED}+cpu")
    installed = plain / ".venv" / "lib" / "python3.11" / "site-packages" / f"torch-{PINNED}.dist-info"
    installed.mkdir(parents=True)
    answer = choose(plain, programs)
    assert answer.stdout == "" and "stays" in answer.stderr
    assert choose(plain, programs, L2M_TORCH="cpu").stdout == CPU_WORDS + "\n"
    installed.rename(installed.with_name("torch-1.0.dist-info"))
    assert choose(plain, programs).stdout == CPU_WORDS + "\n"


def test_a_build_that_is_asked_for_is_taken_whatever_else_is_there(plain: Path, programs: Path) -> None:
    offer(plain, f"{PINNED}+cpu")
    (plain / "settings").write_text("global.find-links='/wheels'\n")
    (plain / "devices" / "nvidia0").touch()
    assert choose(plain, programs, L2M_TORCH="cpu").stdout == CPU_WORDS + "\n"
    assert choose(plain, programs, L2M_TORCH="cuda").stdout == f"torch==={PINNED}\n"


def test_a_cpu_build_that_is_asked_for_and_cannot_be_had_is_named(plain: Path, programs: Path) -> None:
    answer = choose(plain, programs, L2M_TORCH="cpu")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert CPU_INDEX in answer.stderr and PINNED in answer.stderr and "unset L2M_TORCH" in answer.stderr


def test_an_unknown_build_is_refused(plain: Path, programs: Path) -> None:
    answer = choose(plain, programs, L2M_TORCH="rocm")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "L2M_TORCH=rocm" in answer.stderr and "cpu, cuda or auto" in answer.stderr


def test_other_systems_have_one_build(plain: Path, programs: Path) -> None:
    offer(plain, f"{PINNED}+cpu")
    for asked in ("auto", "cpu"):
        answer = choose(plain, programs, OSTYPE="darwin23", L2M_TORCH=asked)
        assert (answer.returncode, answer.stdout) == (0, "") and "the only one for this system" in answer.stderr
    refused = choose(plain, programs, OSTYPE="darwin23", L2M_TORCH="cuda")
    assert refused.returncode == 1 and "no CUDA build" in refused.stderr


def test_the_chosen_build_is_installed_before_the_other_packages(plain: Path, programs: Path) -> None:
    offer(plain, f"{PINNED}+cpu")
    answer = run(plain, programs, "setup", L2M_TORCH="cpu", OSTYPE="linux-gnu")
    assert answer.returncode == 0, answer.stderr
    first, second = (plain / "record").read_text().splitlines()
    assert first.endswith(f"--no-deps {CPU_WORDS}") and first.startswith("constraints.txt ")
    assert "torch" not in second and second.endswith("--editable .[app,train]")


def test_a_build_that_cannot_be_had_stops_the_set_up(project: Path, programs: Path) -> None:
    python_that_installs(programs)
    answer = run(project, programs, "setup", L2M_TORCH="cpu", OSTYPE="linux-gnu")
    assert answer.returncode == 1 and not (project / "record").exists()
    assert run(project, programs, "setup", OSTYPE="linux-gnu").returncode == 0
    # What is installed stays in use.
    assert run(project, programs, "setup", L2M_TORCH="cpu", OSTYPE="linux-gnu").returncode == 1
    assert run(project, programs, "setup").returncode == 0
    assert len((project / "record").read_text().splitlines()) == 1


def test_another_build_is_installed_when_it_is_asked_for(plain: Path, programs: Path) -> None:
    offer(plain, f"{PINNED}+cpu")
    for asked in ("cuda", "cuda", "auto", "cpu", "auto"):
        assert run(plain, programs, "setup", L2M_TORCH=asked, OSTYPE="linux-gnu").returncode == 0
    lines = (plain / "record").read_text().splitlines()
    assert [line.split("torch")[-1] for line in lines if "torch=" in line] == [f"==={PINNED}", f"=={PINNED}+cpu"]


def test_setting_up_says_its_steps_and_what_is_large(project: Path, programs: Path) -> None:
    python_that_installs(programs)
    (project / "said").write_text(
        "Obtaining file:///somewhere\n  Downloading tqdm-4.0-py3-none-any.whl (78 kB)\n"
        "  Downloading nvidia_cudnn_cu13-9.20.0.48-py3-none-manylinux_2_27_x86_64.whl (366.2 MB)\n"
        f"  Downloading {CPU_INDEX}/torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl (191.8 MB)\n"
        "Installing collected packages: tqdm, nvidia-cudnn-cu13\n"
    )
    lines = run(project, programs, "setup").stdout.splitlines()
    assert [line.split(":")[1].strip() for line in lines if " of 3" in line] == ["1 of 3", "2 of 3", "3 of 3"]
    assert "setup:     downloading nvidia_cudnn_cu13 9.20.0.48 (366.2 MB)" in lines
    assert "setup:     downloading torch 2.13.0+cpu (191.8 MB)" in lines
    assert "setup:     unpacking all of it" in lines and lines[-1].startswith("setup: done, after ")
    assert not any("tqdm" in line or "Obtaining" in line for line in lines)


# The same with the real pip, and an index on this computer in the place of PyTorch's.


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an index whose torch is an empty package, once as the CPU build and once without a local version."""
    folder = tmp_path_factory.mktemp("index")
    (folder / "torch").mkdir()
    for version in (f"{PINNED}+cpu", PINNED):
        name = f"torch-{version}"
        with zipfile.ZipFile(folder / "torch" / f"{name}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
            wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{name}.dist-info/RECORD", "")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def real(plain: Path, index: str) -> Path:
    """The plain project, with the real pip, which looks for CPU builds in the index on this computer."""
    add_program(plain / ".venv" / "bin", "python", f'exec {sys.executable} "$@"')
    script = plain / "scripts" / "torch-build"
    script.write_text(script.read_text("utf-8").replace(CPU_INDEX, index), "utf-8")
    return plain


# Neither this computer's settings for pip nor a proxy: both may lie in the environment of the tests.
NO_SETTINGS = {"PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "*"}


def test_pip_tells_what_the_index_of_cpu_builds_offers(real: Path, programs: Path, index: str) -> None:
    answer = choose(real, programs, **NO_SETTINGS)
    assert answer.stdout == f"--index-url {index} torch=={PINNED}+cpu\n", answer.stderr


def test_pip_tells_its_own_settings(real: Path, programs: Path) -> None:
    answer = choose(real, programs, **NO_SETTINGS, PIP_FIND_LINKS="wheels")
    assert answer.stdout == "" and "(find-links)" in answer.stderr


def test_an_index_that_does_not_answer_is_given_up_soon(real: Path, programs: Path) -> None:
    script = real / "scripts" / "torch-build"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        script.write_text(re.sub(r"http://127.0.0.1:\d+", address, script.read_text("utf-8")), "utf-8")
        answer = choose(real, programs, **NO_SETTINGS)
    assert (answer.returncode, answer.stdout) == (0, "") and f"{address} does not answer" in answer.stderr


@pytest.mark.parametrize(("asked", "version"), [("cpu", f"{PINNED}+cpu"), ("cuda", PINNED)])
def test_pip_takes_the_chosen_build_beside_the_exact_versions(
    real: Path, programs: Path, index: str, asked: str, version: str
) -> None:
    words = choose(real, programs, L2M_TORCH=asked, **NO_SETTINGS).stdout.split()
    report = real / "report.json"
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
    pip += ["--constraint", str(real / "constraints.txt"), "--report", str(report), "--disable-pip-version-check"]
    ordinary = {"PIP_INDEX_URL": index} if asked == "cuda" else {}
    subprocess.run([*pip, *words], check=True, env={"HOME": str(real), **NO_SETTINGS, **ordinary}, cwd=real)
    (taken,) = json.loads(report.read_text("utf-8"))["install"]
    assert taken["metadata"]["version"] == version


# -- the system's programs, make and CI -------------------------------------------------------------------------------


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

"""Which build of PyTorch the set-up takes: the CPU's where there is no NVIDIA GPU, else the one with CUDA."""

import functools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.packaging.metadata import pins
from tests.packaging.run_scripts import add_program, python_that_installs, run

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

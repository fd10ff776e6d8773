"""What the README says can be done."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from l2m_core.cli import LAUNCHES
from tests.prerequisites import REPOSITORY

README = (REPOSITORY / "README.md").read_text("utf-8")
PAGES = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_example_runs(tmp_path: Path) -> None:
    (example,) = blocks("python")
    program = tmp_path / "example.py"
    program.write_text(example)
    run = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "worst" in run.stdout or "mean" in run.stdout, "the ranking names no feature"


def test_every_make_target_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    lines = [line for page in PAGES for line in page.read_text("utf-8").splitlines() if line.startswith("make ")]
    named = {word for line in lines for word in line.partition("#")[0].split()[1:]}
    assert {"run", "test"} <= named <= targets


def test_every_console_command_is_described() -> None:
    described = set(re.findall(r"^\| `l2m ([a-z]+)", README, re.MULTILINE))
    assert described == set(LAUNCHES) | {"models"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
    inside = [link for link in links if not link.startswith("http")]
    assert [link for link in inside if not (page.parent / link).exists()] == []


def test_the_first_lines_say_what_it_is() -> None:
    opening = README.split("\n\n")[1]
    assert len(opening.splitlines()) <= 6

"""The console command `l2m`."""

import json
import re
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest

from l2m_core import cli, errors, paths
from l2m_core.cohort import UnseenLevelWarning
from tests.prerequisites import REPOSITORY


@cache  # each start imports much, and is asked about more than once
def run_module(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return run_module("l2m_core.cli", *words)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that this process would have become, or started."""
    lines: list[list[str]] = []
    monkeypatch.setattr(cli.os, "name", "another system")
    monkeypatch.setattr(cli.subprocess, "call", lambda line: lines.append(line) or 0)
    return lines


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(paths, "pretrained_dir", lambda: tmp_path)
    monkeypatch.setattr(cli, "pretrained_dir", lambda: tmp_path)
    return tmp_path


def write_weights(file: Path, shapes: dict[str, list[int]]) -> None:
    """A safetensors header with no numbers behind it."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    header |= {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    text = json.dumps(header).encode()
    file.parent.mkdir(parents=True)
    file.write_bytes(len(text).to_bytes(8, "little") + text)


def test_help_names_every_command() -> None:
    answer = run("--help")
    assert answer.returncode == 0
    for command in ("app", "train", "evaluate", "reproduce", "models"):
        assert re.search(rf"^    {command}\s", answer.stdout, re.MULTILINE)


def test_help_answers_without_loading_the_library() -> None:
    code = "import sys; from l2m_core.cli import build_parser; build_parser().format_help(); print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert not {"torch", "pandas", "streamlit"} & set(answer.stdout.split())


@pytest.mark.parametrize("command", sorted(cli.LAUNCHES))
def test_every_command_explains_itself(command: str) -> None:
    answer = run_module(*cli.LAUNCHES[command], "--help")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("usage: ")


def test_an_unknown_command_is_refused_with_the_known_ones() -> None:
    answer = run("measure")
    assert answer.returncode == 2
    assert "measure" in answer.stderr and "reproduce" in answer.stderr


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["app", "--port", "0"], ["app", "--port", "0"]),
        (["store", "verify"], ["app.store", "verify"]),
        (["train", "predictor", "--config", "a.yaml", "x=3"], ["train", "predictor", "--config", "a.yaml", "x=3"]),
        (["train", "--help"], ["train", "--help"]),
        (["evaluate", "--suite", "real"], ["train", "evaluate", "--suite", "real"]),
        (["reproduce", "all", "--scale", "small"], ["train", "reproduce", "all", "--scale", "small"]),
    ],
)
def test_a_command_hands_over_all_its_words(launched: list[list[str]], words: list[str], module: list[str]) -> None:
    cli.main(words)
    # -P: a file named train.py where the user stands is not run in the job's place.
    assert launched == [[sys.executable, "-P", "-X", f"l2m={words[0]}", "-m", *module]]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["store"], "l2m store"),
        (["store", "verify"], "l2m store verify"),
        (["train"], "l2m train"),
        (["train", "evaluate"], "l2m train evaluate"),
        (["evaluate"], "l2m evaluate"),
        (["reproduce"], "l2m reproduce"),
    ],
)
def test_a_command_names_itself_as_it_was_typed(words: list[str], name: str) -> None:
    assert run(*words, "--help").stdout.startswith(f"usage: {name} [-h]")
    started = [*cli.LAUNCHES[words[0]], *words[1:]]
    assert run_module(*started, "--help").stdout.startswith(f"usage: python -m {' '.join(started)} [-h]")


@pytest.mark.parametrize("command", ["train", "evaluate", "reproduce"])
def test_help_lists_its_choices_once(command: str) -> None:
    told = run(command, "--help").stdout
    listed = {"train": "predictor", "evaluate": "mlp_random", "reproduce": "planning"}[command]
    assert len(re.findall(rf"\b{listed}\b", told)) == 1
    assert len(re.findall(r"\bl2m,", told)) <= 1


def test_a_command_whose_packages_are_missing_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, launched: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    assert cli.main(["app"]) == 1
    assert 'pip install "learning-to-measure[app,train]"' in capsys.readouterr().err
    assert launched == []


def test_models_lists_each_with_its_size(releases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_weights(releases / "general" / "weights.safetensors", {"a": [300, 40], "b": [7], "c": []})
    (releases / "drafts").mkdir()
    assert cli.main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].split()[:2] == ["general", "12,008"]
    assert lines[1].endswith(str(releases / "general"))


def test_models_lists_the_study_s_own_apart(releases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_weights(releases / "general" / "weights.safetensors", {"a": [3]})
    write_weights(releases / "study" / "gp-reduced" / "weights.safetensors", {"a": [5]})
    assert cli.main(["models"]) == 0
    offered, study = capsys.readouterr().out.split("The study's own")
    assert "general" in offered and "gp-reduced" not in offered and "gp-reduced" in study


def test_models_says_so_when_there_is_none(releases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    assert "No released model" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"\x05" + bytes(7) + b"[1,2]", b"\xff" * 64, b"\x02" + bytes(7) + b"{"])
def test_a_damaged_model_file_is_named(releases: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    (releases / "general").mkdir()
    (releases / "general" / "weights.safetensors").write_bytes(content)
    assert cli.main(["models"]) == 1
    assert "weights.safetensors is damaged" in capsys.readouterr().err


def test_in_a_checkout_the_models_are_at_the_top() -> None:
    assert paths.pretrained_dir() == REPOSITORY / "pretrained"


def test_once_installed_the_models_are_in_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "l2m_core" / "_pretrained").mkdir(parents=True)
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "l2m_core")
    assert paths.pretrained_dir() == tmp_path / "l2m_core" / "_pretrained"


def test_a_warning_of_ours_is_one_line_without_a_place_in_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    errors.tell_warnings_plainly()
    own = warnings.formatwarning(UnseenLevelWarning("'x' is no level of sex."), UnseenLevelWarning, "cohort.py", 7)
    assert own == "note: 'x' is no level of sex.\n"
    assert "cohort.py:7" in warnings.formatwarning("divided by nothing", RuntimeWarning, "cohort.py", 7)

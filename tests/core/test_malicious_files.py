"""Files of models and checkpoints that carry a program: it never runs, and the file is refused in words."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml

import l2m_core as l2m
from app.host.services import Services
from app.settings import AppSettings
from l2m_core.answering.release import FACTS, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import L2MError, ModelFileError
from l2m_core.learn.checkpoints import checksum, load_checkpoint, load_tensors, save_checkpoint, signed
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig

CONFIG = ModelConfig(layers=1, width=16, heads=2, feedforward=16)
WEIGHTS = "weights-00.safetensors"
OWNER = "browser-" + "a" * 32


class Payload:
    """Unpickled, it makes a folder: the canary that would show that it ran."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self):
        return os.mkdir, (str(self.canary),)


def as_pickle(canary: Path) -> bytes:
    return pickle.dumps(Payload(canary))


def as_torch_file(canary: Path) -> bytes:
    path = canary.with_name("payload.pt")
    torch.save({"weight": Payload(canary)}, path)
    return path.read_bytes()


def as_zip(canary: Path) -> bytes:
    path = canary.with_name("payload.zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", as_pickle(canary))
    return path.read_bytes()


PROGRAMS: list[Callable[[Path], bytes]] = [as_pickle, as_torch_file, as_zip]
TAGS = [
    "!!python/object/apply:os.mkdir [{canary!r}]",
    "format: !!python/object/apply:os.mkdir [{canary!r}]",
    "training: !!python/object/new:os.mkdir [{canary!r}]",
    "? !!python/object/apply:os.mkdir [{canary!r}]\n: 1",
    "!!python/name:os.mkdir",
    "!!python/module:antigravity",
]


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "it-ran"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "gift"
    save_model(folder, build_model(CONFIG), CONFIG, TrainedRange(), AnswerSettings(), {})
    return folder


def put(folder: Path, content: bytes) -> None:
    """With the right checksum, as whoever means harm would write it."""
    (folder / WEIGHTS).write_bytes(content)
    facts = yaml.safe_load((folder / FACTS).read_text())
    facts["checksums"] = {WEIGHTS: checksum(folder / WEIGHTS)}
    (folder / FACTS).write_text(yaml.safe_dump(facts))


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_payloads_would_run_if_anything_unpickled_them(canary: Path, program) -> None:
    content = program(canary)
    inner = content if program is as_pickle else _pickle_of(content, canary)
    pickle.loads(inner)
    assert canary.is_dir()


def _pickle_of(content: bytes, canary: Path) -> bytes:
    path = canary.with_name("again.zip")
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_in_place_of_weights_is_refused(folder: Path, canary: Path, program) -> None:
    put(folder, program(canary))
    with pytest.raises(ModelFileError, match="not safetensors"):
        l2m.load(str(folder))
    assert not canary.exists()


@pytest.mark.parametrize("text", TAGS)
def test_tags_that_build_things_are_refused(folder: Path, canary: Path, text: str) -> None:
    (folder / FACTS).write_text(text.format(canary=str(canary)))
    with pytest.raises(ModelFileError, match="cannot be read"):
        l2m.load(str(folder))
    assert not canary.exists()


def test_programs_that_lie_beside_the_weights_are_not_touched(folder: Path, canary: Path) -> None:
    for name in ("weights.pt", "pytorch_model.bin", "optimiser.pkl", "weights-00.pt", "__init__.py", "conftest.py"):
        is_code = name.endswith(".py")
        (folder / name).write_bytes(f"import os; os.mkdir({str(canary)!r})".encode() if is_code else as_pickle(canary))
    assert l2m.load(str(folder)).name == "gift"
    assert not canary.exists()


def test_a_torch_file_alone_is_no_model(tmp_path: Path, canary: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(as_torch_file(canary))
    with pytest.raises(ModelFileError, match="There is no model"):
        l2m.load(str(path))
    assert not canary.exists()


# -- checkpoints ----------------------------------------------------------------------------------------------------


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save_checkpoint(tmp_path / "checkpoints", 1, {"weights": {"layer": torch.ones(3)}}, {})


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_in_a_checkpoint_is_refused(checkpoint: Path, canary: Path, program) -> None:
    (checkpoint / WEIGHTS).write_bytes(program(canary))
    with pytest.raises(ModelFileError, match="does not match its checksum"):
        load_checkpoint(checkpoint.parent)
    state = json.loads((checkpoint / "state.json").read_text())
    state["checksums"][WEIGHTS] = checksum(checkpoint / WEIGHTS)
    (checkpoint / "state.json").write_text(json.dumps(signed(state)))
    path, _ = load_checkpoint(checkpoint.parent)
    with pytest.raises(ModelFileError, match="not safetensors"):
        load_tensors(path, "weights")
    assert not canary.exists()


@pytest.mark.parametrize(
    "state",
    [
        "",
        "null",
        "[]",
        "[" * 100_000,
        '{"step": 1}',
        '{"step": 1, "checksums": []}',
        '{"step": 1, "checksums": {}}',
        '{"step": 1, "checksums": {"/dev/zero": "0"}}',
        '{"step": 1, "checksums": {"../../../../etc/passwd": "0"}}',
        '{"step": 1, "checksums": {"": "0"}}',
        '{"step": 1, "checksums": {"a\\u0000b": "0"}}',
        '{"step": "!!python/name:os.mkdir", "checksums": {"WEIGHTS": "SUM"}}',
        '{"step": Infinity, "checksums": {"WEIGHTS": "SUM"}}',
        "\x80\x04cposix\nmkdir\n",
    ],
)
def test_odd_states_of_a_checkpoint_are_refused(checkpoint: Path, state: str) -> None:
    text = state.replace("WEIGHTS", WEIGHTS).replace("SUM", checksum(checkpoint / WEIGHTS))
    (checkpoint / "state.json").write_text(text)
    with pytest.raises(ModelFileError, match="No usable checkpoint"):
        load_checkpoint(checkpoint.parent)


def test_a_state_that_is_a_pickle_is_refused(checkpoint: Path, canary: Path) -> None:
    (checkpoint / "state.json").write_bytes(as_pickle(canary))
    with pytest.raises(ModelFileError, match="No usable checkpoint"):
        load_checkpoint(checkpoint.parent)
    assert not canary.exists()


def test_weights_without_a_checksum_are_not_slipped_in(checkpoint: Path) -> None:
    shutil.copy(checkpoint / WEIGHTS, checkpoint / "weights-01.safetensors")
    with pytest.raises(ModelFileError, match="not every file has a checksum"):
        load_checkpoint(checkpoint.parent)


# -- the app --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [*PROGRAMS, *TAGS])
def test_the_app_lists_a_malicious_model_and_refuses_to_load_it(
    tmp_path: Path, folder: Path, canary: Path, how
) -> None:
    if isinstance(how, str):
        (folder / FACTS).write_text(how.format(canary=str(canary)))
    else:
        put(folder, how(canary))
    services = Services(AppSettings(tmp_path, f"sqlite:///{tmp_path / 'l2m.sqlite3'}"))
    try:
        services.store.models.register(OWNER, "gift", "0" * 64, str(folder), "# Gift")
        assert {"general", "gift"} <= set(services.model_names(OWNER))
        with pytest.raises(L2MError):
            services.model(OWNER, "gift")
        assert services.model_of(OWNER, "0" * 64) is None
    finally:
        services.shut_down()
        services.store.close()
    assert not canary.exists()

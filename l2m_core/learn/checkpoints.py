"""Checkpoints that a crash cannot damage: a reader finds the old one or the new one, never half of either.

A checkpoint is a folder `step-…` written whole under a temporary name, flushed, renamed, and only then named in
`latest`. Tensors are safetensors in parts of bounded size; everything else is JSON. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from l2m_core.errors import ModelFileError
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.paths import naming
from l2m_core.settings import build_settings

PART_BYTES = 15 * 2**20
LATEST = "latest"
STATE = "state.json"
OWN_SUM = "state_checksum"  # in the state itself, over all else that it says
CHANGED = "does not match its checksum"
FOLDER = "checkpoints"  # of a job's folder


def save_tensors(folder: Path, name: str, tensors: dict[str, Tensor], part_bytes: int = PART_BYTES) -> None:
    """Writes `name-00.safetensors`, `name-01…` with at most `part_bytes` each (a single larger tensor excepted)."""
    parts: list[dict[str, Tensor]] = [{}]
    size = 0
    for key, tensor in sorted(tensors.items()):
        tensor = tensor.detach().cpu().contiguous()
        if parts[-1] and size + tensor.nbytes > part_bytes:
            parts.append({})
            size = 0
        parts[-1][key] = tensor
        size += tensor.nbytes
    for index, part in enumerate(parts):
        path = folder / f"{name}-{index:02d}.safetensors"
        try:
            save_file(part, path)
        except SafetensorError as error:  # what a full disk is called there
            raise OSError(f"{path.name} could not be written: {error}") from error
        flush(path)


def load_tensors(folder: Path, name: str) -> dict[str, Tensor]:
    paths = sorted(folder.glob(f"{name}-*.safetensors"))
    if not paths:
        raise ModelFileError(f"{folder} holds no {name}-*.safetensors; the file is missing or was moved.")
    tensors: dict[str, Tensor] = {}
    for path in paths:
        try:
            tensors.update(load_file(path))
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelFileError(f"{path.name} in {path.parent} is damaged or is not safetensors: {error}.") from error
    return tensors


def save_checkpoint(folder: Path, step: int, tensors: dict[str, dict[str, Tensor]], facts: dict, keep: int = 2) -> Path:
    """tensors: {"weights": {...}, "optimiser": {...}, ...}; facts: JSON. Old checkpoints beyond `keep` go.

    A whole checkpoint of the same step stays as it is: within one job, the same step is the same state.
    """
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"step-{step:09d}"
    # A resumed job may reach the same step again: its checkpoint is the same and need not be written.
    if final.is_dir() and _problem(final) is None:
        return final
    for left_over in folder.glob(".step-*"):  # of a process that was killed while it wrote
        shutil.rmtree(left_over, ignore_errors=True)
    temporary = folder / f".{final.name}.{os.getpid()}"
    temporary.mkdir()
    try:
        for name, group in tensors.items():
            save_tensors(temporary, name, group)
        # Checksums go in last, so a checkpoint that lacks them was never finished.
        sums = {path.name: checksum(path) for path in sorted(temporary.iterdir())}
        write_text(temporary / STATE, json.dumps(signed({"step": step, **facts, "checksums": sums}), indent=1))
        shutil.rmtree(final, ignore_errors=True)
        # A rename is atomic: readers see no checkpoint or a whole one.
        os.replace(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    # The rename itself is in the folder's entry, which has to reach the disk as well.
    flush(folder)
    write_text(folder / LATEST, final.name)
    for old in sorted(folder.glob("step-*"))[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def load_checkpoint(folder: Path) -> tuple[Path, dict]:
    """The newest checkpoint that is whole: its folder and facts. Damaged ones are passed over, newest first."""
    candidates = sorted(folder.glob("step-*"), reverse=True)
    reasons = []
    for candidate in candidates:
        problem = _problem(candidate)
        if problem is None:
            return candidate, _read_facts(candidate)
        reasons.append(f"{candidate.name}: {problem}")
    detail = "; ".join(reasons) or ("there is none" if folder.is_dir() else "there is none: no such folder")
    raise ModelFileError(f"No usable checkpoint in {folder} ({detail}).")


def find_checkpoint(folder: Path) -> tuple[Path, dict] | None:
    """The folder and facts of the newest whole checkpoint of a job's folder, or of `folder` where it is one itself.

    None where it is neither.
    """
    if (folder / FOLDER).is_dir():
        return load_checkpoint(folder / FOLDER)
    if (folder / STATE).is_file():
        facts = _read_facts(folder)
        if is_changed(facts):
            raise ModelFileError(f"{STATE} of {folder} {CHANGED}. Take another checkpoint, or copy this one again.")
        return folder, facts
    return None


def load_model(folder: Path, facts: dict) -> nn.Module:
    """The model of a checkpoint, with the running average of its weights: that is what gets released."""
    model = build_model(build_settings(ModelConfig, facts["model"], "model"))
    weights = {**load_tensors(folder, "weights"), **load_tensors(folder, "average")}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(f"The weights in {folder} do not fit the model that is described beside them.") from error
    return model


def _problem(folder: Path) -> str | None:
    """What keeps a checkpoint from being whole; None when nothing does."""
    try:
        facts = _read_facts(folder)
        if is_changed(facts):
            return f"{STATE} {CHANGED}"
        for name, expected in facts["checksums"].items():
            if Path(name).name != name:  # it may not lead out of the folder, to where reading never ends
                return f"{STATE} names a file of another folder"
            if checksum(folder / name) != expected:
                return f"{name} {CHANGED}"
        # A file that nobody signed could be anything, weights of another model included.
        unsigned = {path.name for path in folder.glob("*.safetensors")} - set(facts["checksums"])
        if unsigned or not facts["checksums"]:
            return "not every file has a checksum"
        if not isinstance(facts["step"], int):
            return "its step is no whole number"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"{type(error).__name__} {error}"
    return None


def signed(facts: dict) -> dict:
    """The facts with the checksum of all of them, so that one changed by hand is found."""
    facts = {name: value for name, value in facts.items() if name != OWN_SUM}
    return {**facts, OWN_SUM: _sum_of(facts)}


def is_changed(facts: Any) -> bool:
    """Whether the facts are not those that were signed. Those of older checkpoints have no checksum of their own."""
    return isinstance(facts, dict) and OWN_SUM in facts and facts[OWN_SUM] != signed(facts)[OWN_SUM]


def _sum_of(facts: dict) -> str:
    """Over the values, not the text: line ends and indents may change on the way."""
    as_read = json.loads(json.dumps(facts))  # tuples as lists, and every name a text
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()


def _read_facts(folder: Path) -> Any:
    return json.loads((folder / STATE).read_text())


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Atomically: a reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming(path):
            temporary.write_bytes(content)
            flush(temporary)
            os.replace(temporary, path)
    except BaseException:  # a full disk: what is half written would fill it further
        temporary.unlink(missing_ok=True)
        raise
    flush(path.parent)


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flatten_optimiser(state: list[dict]) -> tuple[dict[str, Tensor], list]:
    """Optimiser states as named tensors, and the rest as JSON."""
    tensors, rest = {}, []
    for index, part in enumerate(state):
        numbers: dict[str, dict] = {}
        # An optimiser's state is tensors (momenta) and plain numbers (step counts) by parameter index.
        for key, entry in part["state"].items():
            for name, value in entry.items():
                if isinstance(value, Tensor):
                    tensors[f"{index}/{key}/{name}"] = value
                else:
                    numbers.setdefault(str(key), {})[name] = value
        rest.append({"numbers": numbers, "param_groups": part["param_groups"]})
    return tensors, rest


def unflatten_optimiser(tensors: dict[str, Tensor], rest: list) -> list[dict]:
    state = []
    for index, part in enumerate(rest):
        entries: dict[int, dict] = {int(key): dict(value) for key, value in part["numbers"].items()}
        for name, value in tensors.items():
            part_index, key, field = name.split("/")
            if int(part_index) == index:
                entries.setdefault(int(key), {})[field] = value.clone()
        state.append({"state": entries, "param_groups": part["param_groups"]})
    return state

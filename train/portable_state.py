"""What a training needs to go on elsewhere, in a few small files: a checkpoint, packed and unpacked, with its learning curve.

The weights stay float32. The running average is kept as its bfloat16 difference from the weights, and the optimiser's
moments as bfloat16: both are noisy by nature, and halving them keeps the state small enough to travel. Going on from a
packed state therefore follows the unbroken run closely, not bit for bit. Where a job trains heads on a released model's trunk,
the state may rest on that model (`--base`) and leave out the weights that are still its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from l2m_core.answering.release import load_release
from l2m_core.errors import ConfigError, L2MError, ModelFileError
from l2m_core.learn import logs
from l2m_core.learn.checkpoints import (
    OWN_SUM,
    checksum,
    is_changed,
    load_checkpoint,
    load_tensors,
    save_checkpoint,
    save_tensors,
    signed,
    write_text,
)
from train import difference
from train.initial_model import load_initial_model

VERSION = 1
STATE = "state.json"
TENSORS = "state"
CURVE = "curve.jsonl"
BASE = "base"
# As tensors are named in the files: the group of the checkpoint before the tensor's own name.
WEIGHTS, AVERAGE, OPTIMISER, RANDOM = "weights/", "average/", "optimiser/", "random/"
MOST_FILES, LARGEST_FILE = 8, 16 * 2**20


def pack(checkpoints: Path, folder: Path, curve: Path | None = None, base: str | None = None) -> list[Path]:
    """Writes the newest whole checkpoint as a portable state, in place of an older one; returns its files.

    curve: the training's log, which travels with it where there is one.
    base: a released model, by name or folder; what the checkpoint has of it is not written.
    """
    path, facts = load_checkpoint(checkpoints)
    weights, average = load_tensors(path, "weights"), load_tensors(path, "average")
    of_base: dict[str, Tensor] = {}
    if base is not None:
        release = load_release(base, "cpu")
        facts[BASE] = {"model": base, "fingerprint": release.fingerprint}
        of_base = release.module.state_dict()
    own = [name for name in weights if not (_is_of(of_base, name, weights) and _is_of(of_base, name, average))]
    tensors = {WEIGHTS + name: weights[name] for name in own}
    tensors |= {AVERAGE + name: (average[name] - weights[name]).bfloat16() for name in own if name in average}
    tensors |= {OPTIMISER + name: _lowered(tensor) for name, tensor in load_tensors(path, "optimiser").items()}
    tensors |= {RANDOM + name: tensor for name, tensor in load_tensors(path, "random").items()}
    _refuse_other_files(folder)
    draft = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        _write(draft, tensors, facts, curve)
    except BaseException:  # a full disk: what is half written would fill it further
        shutil.rmtree(draft, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return sorted(folder.iterdir())


def _write(draft: Path, tensors: dict[str, Tensor], facts: dict[str, Any], curve: Path | None) -> None:
    save_tensors(draft, TENSORS, tensors)
    if curve is not None and curve.is_file():
        write_text(draft / CURVE, curve.read_text())
    _check_size(draft)
    sums = {file.name: checksum(file) for file in sorted(draft.iterdir())}
    kept = {key: value for key, value in facts.items() if key not in ("checksums", OWN_SUM)}
    write_text(draft / STATE, json.dumps(signed({"version": VERSION, **kept, "checksums": sums}), indent=1))


def _refuse_other_files(folder: Path) -> None:
    """A state takes the place of a state. A folder that holds anything else would be lost with it."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(f"{folder} is a file. Name a folder for the state.")
    own = {STATE, CURVE, *(file.name for file in folder.glob(f"{TENSORS}-*.safetensors"))}
    others = sorted(path.name for path in folder.iterdir() if path.name not in own)
    if others:
        raise ConfigError(
            f"{folder} holds {others[0]}, which is no part of a state. Name a folder of its own for the state."
        )


def unpack(folder: Path, checkpoints: Path, model: dict[str, Any], base: str | None = None) -> int:
    """Writes the state as a checkpoint that a job resumes from; returns its step.

    model: the settings of the job's model. A state of another model is refused, with the settings that differ.
    base: the released model that the state rests on, where it has another name by now.
    """
    if any(checkpoints.glob("step-*")):
        raise ConfigError(f"{checkpoints.parent} holds checkpoints already. Name another folder for the state's.")
    facts = _read_facts(folder)
    different = sorted(key for key in {*model, *facts["model"]} if model.get(key) != facts["model"].get(key))
    if different:
        pairs = ", ".join(f"{key} is {facts['model'].get(key)!r}, not {model.get(key)!r}" for key in different)
        raise ModelFileError(f"The training state in {folder} is of another model: {pairs}. Name its own config.")
    tensors = load_tensors(folder, TENSORS)
    weights = _group(tensors, WEIGHTS)
    average = {name: weights[name] + difference.float() for name, difference in _group(tensors, AVERAGE).items()}
    left_out = {name: tensor for name, tensor in _base_of(folder, facts, base).items() if name not in weights}
    weights, average = left_out | weights, left_out | average
    groups = {"weights": weights, "average": average, "random": _group(tensors, RANDOM)}
    groups["optimiser"] = {name: _raised(tensor) for name, tensor in _group(tensors, OPTIMISER).items()}
    step = facts.pop("step")
    kept = {key: value for key, value in facts.items() if key not in ("version", "checksums", BASE, OWN_SUM)}
    save_checkpoint(checkpoints, step, groups, kept)
    return step


def _is_of(base: dict[str, Tensor], name: str, tensors: dict[str, Tensor]) -> bool:
    return name in base and name in tensors and torch.equal(base[name], tensors[name])


def _base_of(folder: Path, facts: dict[str, Any], base: str | None) -> dict[str, Tensor]:
    """The weights of the released model that the state rests on; none where it holds all of its own."""
    if BASE not in facts:
        return {}
    name, fingerprint = base or facts[BASE]["model"], facts[BASE]["fingerprint"]
    release = load_release(name, "cpu")
    if release.fingerprint != fingerprint:
        raise ModelFileError(
            f"The training state in {folder} rests on a model of fingerprint {fingerprint[:12]}, but '{name}' has "
            f"{release.fingerprint[:12]}. Name the one with that fingerprint, such as an earlier release: --base NAME."
        )
    return {key: tensor.clone() for key, tensor in release.module.state_dict().items()}


def has_state(folder: Path) -> bool:
    return (folder / STATE).is_file()


def _read_facts(folder: Path) -> dict[str, Any]:
    try:
        facts = json.loads((folder / STATE).read_text())
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{folder / STATE} cannot be read ({error}); copy the whole state again.") from error
    if not isinstance(facts, dict) or facts.get("version") != VERSION:
        version = facts.get("version") if isinstance(facts, dict) else None
        raise ModelFileError(
            f"The training state in {folder} has version {version!r}; this program reads version {VERSION}. "
            f"Go on with the program that wrote it, or begin anew with another folder."
        )
    if is_changed(facts):
        raise ModelFileError(f"{folder / STATE} does not match its own checksum; copy the whole state again.")
    for name, expected in facts["checksums"].items():
        file = folder / Path(name).name
        if not file.is_file() or checksum(file) != expected:
            raise ModelFileError(f"{file.name} in {folder} is missing or damaged; copy the whole state again.")
    return facts


def _check_size(folder: Path) -> None:
    files = sorted(folder.iterdir())
    largest = max(files, key=lambda file: file.stat().st_size)
    # One more file is the description beside them.
    if len(files) + 1 > MOST_FILES or largest.stat().st_size > LARGEST_FILE:
        raise ModelFileError(
            f"The training state takes {len(files) + 1} files, the largest {largest.stat().st_size / 2**20:.0f} MiB; "
            f"at most {MOST_FILES} files of {LARGEST_FILE // 2**20} MiB travel. Train a smaller model."
        )


def _group(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _lowered(tensor: Tensor) -> Tensor:
    """Moments as bfloat16; single numbers, such as a step count, as they are."""
    return tensor.bfloat16() if tensor.is_floating_point() and tensor.ndim > 0 else tensor


def _raised(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype == torch.bfloat16 else tensor


def main(arguments: Sequence[str] | None = None) -> int:
    """Packs the newest checkpoint of a job's folder as a state that travels, or makes a state that folder's newest checkpoint; or
    keeps its weights alone, to begin with, as their difference from a released model's."""
    parser = argparse.ArgumentParser(prog="python -m train.portable_state", description=main.__doc__)
    parser.add_argument("what", choices=("pack", "unpack", "keep"))
    parser.add_argument("state", type=Path, help="folder of the state")
    parser.add_argument("job", type=Path, help="folder of the job, which may be running")
    parser.add_argument("--base", help="a released model whose weights the state need not hold, or does not")
    given = parser.parse_args(arguments)
    checkpoints = given.job / "checkpoints"
    try:
        if given.what == "pack":
            pack(checkpoints, given.state, given.job / logs.NAME, given.base)
            step = _read_facts(given.state)["step"]
            print(f"{given.state} is step {step:,} of {given.job}.")
        elif given.what == "keep":
            difference.keep(load_initial_model(str(given.job), setting="job"), given.base or "general", given.state)
            print(f"{given.state} can be begun with (init).")
        else:
            step = unpack(given.state, checkpoints, _read_facts(given.state)["model"], given.base)
            if (given.state / CURVE).is_file():
                write_text(given.job / logs.NAME, (given.state / CURVE).read_text())
            print(f"{given.job} goes on from step {step:,}.")
    except (L2MError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

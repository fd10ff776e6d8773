"""Released models on disk: a folder with weights (safetensors), `model.yaml` and a card. Loading runs no code."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import nn

from l2m_core.errors import ConfigError, ModelFileError
from l2m_core.learn.checkpoints import checksum, load_tensors, save_tensors, write_text
from l2m_core.model.interface import ModelConfig, build
from l2m_core.paths import model_folders

FORMAT = 2  # 1: the gain head was linked to nats by another function, so its numbers would be read wrongly
FACTS = "model.yaml"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Range:
    """What the model was trained on; outside it answers come with a warning."""

    features: int = 40
    """Most features of a training task."""
    context_rows: int = 2000
    """Most context rows of a training task."""
    classes: int = 10
    """Most classes; an outcome with more is refused."""
    outcomes: tuple[str, ...] = ("binary", "multiclass", "continuous")
    """Kinds of outcome; others are refused."""


@dataclass(frozen=True)
class Inference:
    """Care at inference, each chosen by held-out synthetic log loss."""

    temperature: float = 1.0
    """Divides class logits."""
    views: int = 1
    """Codings of the classes that answers are averaged over; see l2m_core/care.py."""
    prevalence: float = 0.0
    """Share by which predictions are moved towards the cohort's class frequencies where nothing is known."""
    policy: str = "gain"
    """The default policy."""


@dataclass(frozen=True)
class Release:
    """A model as loaded: its module, what it was trained on, and where it came from."""

    name: str
    module: nn.Module
    config: ModelConfig
    trained: Range = field(default_factory=Range)
    inference: Inference = field(default_factory=Inference)
    fingerprint: str = ""
    """sha256 over the weights' checksums and the settings that change answers."""
    card: str = ""


def save_model(folder: Path, module: nn.Module, config: ModelConfig, trained: Range, inference: Inference,
               training: dict[str, Any], card: str = "") -> None:  # fmt: skip
    """Writes a released model; `training` is the configuration that made it, kept as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("weights-*.safetensors"):
        old.unlink()
    save_tensors(folder, "weights", dict(module.state_dict()))
    facts = {
        "format": FORMAT,
        "model": _plain(config),
        "trained": _plain(trained),
        "inference": _plain(inference),
        "checksums": {path.name: checksum(path) for path in sorted(folder.glob("weights-*.safetensors"))},
        "training": training,
    }
    if card:
        write_text(folder / "card.md", card)
    write_text(folder / FACTS, yaml.safe_dump(facts, sort_keys=False, allow_unicode=True))


def load_release(name: str | Path = "general", device: str | torch.device = "cpu", dtype: str = "float32") -> Release:
    """A released model by name, or any folder that holds one. Damage is found before anything is computed."""
    folder = find_model(name)
    facts = _read_facts(folder)
    for file, expected in facts["checksums"].items():
        path = folder / Path(file).name
        if not path.is_file():
            raise ModelFileError(f"{path.name} is missing from {folder.name}; copy the whole model folder again.")
        if checksum(path) != expected:
            raise ModelFileError(
                f"{path.name} of model '{folder.name}' does not match its checksum: the file is damaged or was changed. "
                f"Copy the model folder again."
            )
    try:
        config = ModelConfig.from_dict(facts["model"])
        trained = _record(Range, facts["trained"])
        inference = _record(Inference, facts["inference"])
    except (ConfigError, TypeError) as error:
        raise ModelFileError(f"{FACTS} of model '{folder.name}' cannot be used: {error}") from error
    module = build(config)
    weights = load_tensors(folder, "weights")
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(f"The weights of '{folder.name}' do not fit its {FACTS}: {error}.") from error
    module = module.to(device=device, dtype=DTYPES[dtype]).eval().requires_grad_(False)
    card = folder / "card.md"
    digest = hashlib.sha256(
        yaml.safe_dump([facts["checksums"], facts["model"], facts["inference"], dtype]).encode()
    ).hexdigest()
    return Release(folder.name, module, config, trained, inference, digest, card.read_text() if card.is_file() else "")


def find_model(name: str | Path) -> Path:
    """A released model's folder by name, or the folder itself."""
    known = model_folders()
    if str(name) in known:
        return known[str(name)]
    folder = Path(name)
    if (folder / FACTS).is_file():
        return folder
    have = ", ".join(sorted(known)) or "none"
    raise ModelFileError(f"There is no model '{name}'. Released models: {have}; or give a folder that holds {FACTS}.")


def _read_facts(folder: Path) -> dict[str, Any]:
    try:
        facts = yaml.safe_load((folder / FACTS).read_text())
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ModelFileError(f"{FACTS} of model '{folder.name}' cannot be read: {error}.") from error
    if not isinstance(facts, dict) or not {"format", "model", "trained", "inference", "checksums"} <= set(facts):
        raise ModelFileError(f"{FACTS} of model '{folder.name}' is incomplete; copy the model folder again.")
    if facts["format"] != FORMAT:
        raise ModelFileError(
            f"Model '{folder.name}' has format {facts['format']}, this version reads format {FORMAT}; "
            f"update L2M or fetch the model for this version."
        )
    return facts


def _plain(record) -> dict[str, Any]:
    return {f.name: list(v) if isinstance(v := getattr(record, f.name), tuple) else v for f in fields(record)}


def _record(kind, settings: dict[str, Any]):
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()})

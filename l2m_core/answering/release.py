"""Released models on disk: a folder with weights (safetensors), `model.yaml` and a card. Loading runs no code."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import nn

from l2m_core.answering import devices
from l2m_core.answering.devices import Device
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError, ModelFileError
from l2m_core.learn.checkpoints import checksum, load_tensors, save_tensors, write_text
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.paths import all_folders, model_folders
from l2m_core.settings import build_settings, parse_settings, to_plain

# 1: the gain head was linked to nats by another function, so its numbers would be read wrongly.
# 2: the fingerprint does not cover what the model was trained on; these keep theirs, which traces and cohorts name.
FORMAT = 3
FORMATS_READ = (2, FORMAT)
FACTS = "model.yaml"
WEIGHTS = "weights-*.safetensors"
FEWEST_ROWS = 100  # are read of a cohort that has them, however wide it is
UNTOLD = "untold"  # on which cohort a model was fine-tuned, by models that did not say so
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Release:
    """A model as loaded: its module, what it was trained on, and where it came from."""

    name: str
    module: nn.Module
    config: ModelConfig
    trained: TrainedRange = field(default_factory=TrainedRange)
    inference: AnswerSettings = field(default_factory=AnswerSettings)
    fingerprint: str = ""
    """sha256 over the weights' checksums, the settings that change answers and, from format 3 on, the trained range."""
    card: str = ""
    device: Device = devices.ON_CPU
    """Where `module` computes."""
    spare: nn.Module | None = None
    """The same weights on the CPU, for when the GPU fails; None where `module` is there already."""
    tuned_on: str = ""
    """Content hash of the cohort that it was fine-tuned on, or UNTOLD; empty: on none."""

    def __repr__(self) -> str:
        return f"Release({self.name!r}, {self.fingerprint[:12]})"

    @property
    def foresees(self) -> bool:
        """Whether it says what a test's result may be, and computes gains from that."""
        return self.inference.gains == "answers"

    @property
    def together(self) -> int:
        """Rows of a cohort that are read together, at most."""
        return self.inference.part_rows or self.trained.most_rows

    def most_rows(self, columns: int) -> int:
        """Rows that are read, at most, of a cohort with so many columns, its outcome's among them."""
        rows, cells = self.together * self.inference.most_parts, self.inference.most_cells
        return min(rows, max(FEWEST_ROWS, cells // columns)) if cells else rows

    def rows_read(self, cohort: Cohort) -> int:
        """How many rows of the cohort are read."""
        return min(len(cohort), self.most_rows(1 + len(cohort.names)))

    def parts_of(self, cohort: Cohort) -> int:
        """In how many parts the cohort is read: as few as have no more rows than are read together."""
        return math.ceil(self.rows_read(cohort) / self.together)

    def views_of(self, cohort: Cohort) -> int:
        """Codings of the classes under which the cohort is read as a whole."""
        most = self.inference.views_up_to
        return self.inference.views if not most or len(cohort) <= most else 1

    def check(self, cohort: Cohort) -> tuple[str, ...]:
        """Sentences on where the cohort lies outside the trained range; refuses what cannot be answered at all."""
        read, columns = self.rows_read(cohort), len(cohort.names)
        notes = self.trained.check(cohort, self.name, min(self.together, read))
        if len(cohort) <= read:
            return notes
        of_any = self.most_rows(1)
        why = (
            "would tell it nothing and take time" if read == of_any else f"of {columns:,} features would take too long"
        )
        return *notes, (
            f"The cohort has {len(cohort):,} rows; model '{self.name}' reads an even part of {read:,}, since more {why}."
        )

    def on_cpu(self) -> Release:
        """This release, on the CPU from here on."""
        return (
            self
            if self.spare is None
            else replace(self, module=self.spare, spare=None, device=devices.after(self.device))
        )


def save_model(
    folder: Path,
    module: nn.Module,
    config: ModelConfig,
    trained: TrainedRange,
    inference: AnswerSettings,
    training: dict[str, Any],
    card: str = "",
) -> None:
    """Writes a released model; `training` is the configuration that made it, kept as it is.

    Written to a draft folder and then moved, so that a reader finds the old model or the new one, never half of it. Other
    files of an old folder of that name stay.
    """
    if problem := _impossible(config, inference):
        raise ConfigError(f"inference says {problem}. Leave out that setting.")
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        if folder.is_dir():
            shutil.copytree(folder, draft, ignore=_old_model_of(folder))
        else:
            draft.mkdir(parents=True)
        save_tensors(draft, "weights", dict(module.state_dict()))
        facts = {
            "format": FORMAT,
            "model": to_plain(config),
            "trained": to_plain(trained),
            "inference": to_plain(inference),
            "checksums": {path.name: checksum(path) for path in sorted(draft.glob(WEIGHTS))},
            "training": to_plain(training),  # so that nothing is written as an alias, which is not read
        }
        if card:
            write_text(draft / "card.md", card)
        write_text(draft / FACTS, yaml.safe_dump(facts, sort_keys=False, allow_unicode=True))
        _replace(draft, folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _old_model_of(folder: Path) -> Callable[[str, list[str]], set[str]]:
    """Which files of the folder are not copied, as copytree asks: a model's own. A folder in it may hold other weights, such as
    the checkpoints of the job that the model is made of."""
    own = shutil.ignore_patterns(WEIGHTS, FACTS)
    return lambda place, names: own(place, names) if Path(place) == folder else set()


def _replace(draft: Path, folder: Path) -> None:
    """Moves the draft to where the folder is."""
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.is_dir():
        os.replace(folder, old)
    os.replace(draft, folder)
    shutil.rmtree(old, ignore_errors=True)


def load_release(name: str | Path = "general", device: str | None = None, dtype: str = "float32") -> Release:
    """A released model by name, or any folder that holds one. Damage is found before anything is computed.

    device: as `devices.choose` reads it.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"dtype is {dtype!r}; it must be one of {', '.join(DTYPES)}.")
    chosen = devices.choose(device)
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
        config = build_settings(ModelConfig, facts["model"], "model")
        trained = build_settings(TrainedRange, facts["trained"], "trained")
        inference = build_settings(AnswerSettings, facts["inference"], "inference")
    except ConfigError as error:
        raise ModelFileError(f"{FACTS} of model '{folder.name}' cannot be used: {error}") from error
    if problem := _impossible(config, inference):
        raise ModelFileError(f"{FACTS} of model '{folder.name}' says {problem}.")
    module = build_model(config)
    weights = load_tensors(folder, "weights")
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(f"The weights of '{folder.name}' do not fit its {FACTS}: {error}.") from error
    if not all(weight.isfinite().all() for weight in module.state_dict().values()):
        raise ModelFileError(
            f"Weights of '{folder.name}' are not numbers: it was released from a run that went astray."
        )
    module = module.to(dtype=DTYPES[dtype]).eval().requires_grad_(False)
    card = folder / "card.md"
    text = card.read_text() if card.is_file() else ""
    placed, taken = devices.put(module, chosen)
    spare = None if taken.is_cpu else module
    tuned_on = _tuned_on(facts)
    return Release(
        folder.name, placed, config, trained, inference, _fingerprint(facts, dtype), text, taken, spare, tuned_on
    )


def _tuned_on(facts: Mapping[str, Any]) -> str:
    """See Release."""
    training = facts.get("training")
    if not isinstance(training, Mapping):
        return ""
    job = training.get("job")
    is_tuned = isinstance(job, Mapping) and "finetune" in job
    return str(training.get("cohort_hash", UNTOLD if is_tuned else ""))


def _fingerprint(facts: dict[str, Any], dtype: str) -> str:
    covered = [facts["checksums"], facts["model"], facts["inference"], dtype]
    if facts["format"] > 2:
        covered.append(facts["trained"])
    return hashlib.sha256(yaml.safe_dump(covered).encode()).hexdigest()


def find_model(name: str | Path) -> Path:
    """A released model's folder by name, or the folder itself."""
    if not isinstance(name, str | Path):
        raise ModelFileError(f"A model is named by a text or a folder, not by {name!r:.60}.")
    released = all_folders()
    if str(name) in released:
        return released[str(name)]
    folder = Path(name)
    if (folder / FACTS).is_file():
        return folder
    have = ", ".join(sorted(model_folders())) or "none"
    raise ModelFileError(f"There is no model '{name}'. Released models: {have}; or give a folder that holds {FACTS}.")


def _impossible(config: ModelConfig, inference: AnswerSettings) -> str | None:
    """What the settings ask of the model's answers that such a model cannot give; None where it can give all."""
    if inference.gains == "answers" and not config.value_bins:
        return "gains: answers, but the model foresees no results"
    if inference.aligned_states and not config.value_bins:
        return f"aligned_states: {inference.aligned_states}, but the model foresees no results"
    if inference.part_rows and config.encoder == "rows":
        return f"part_rows: {inference.part_rows}, but a model of rows reads all together"
    return None


def _read_facts(folder: Path) -> dict[str, Any]:
    try:
        facts = parse_settings((folder / FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, ConfigError) as error:
        raise ModelFileError(f"{FACTS} of model '{folder.name}' cannot be read: {error}") from error
    if not {"format", "model", "trained", "inference", "checksums"} <= set(facts):
        raise ModelFileError(f"{FACTS} of model '{folder.name}' is incomplete; copy the model folder again.")
    parts = all(isinstance(facts[part], Mapping) for part in ("model", "trained", "inference", "checksums"))
    if not parts or not all(isinstance(file, str) for file in facts["checksums"]):
        raise ModelFileError(
            f"{FACTS} of model '{folder.name}' is not laid out as it should be; copy the folder again."
        )
    unsigned = sorted({path.name for path in folder.glob(WEIGHTS)} - set(facts["checksums"]))
    if unsigned:
        raise ModelFileError(
            f"{FACTS} of model '{folder.name}' has no checksum of {unsigned[0]}; copy the folder again."
        )
    if type(facts["format"]) is not int or facts["format"] not in FORMATS_READ:
        raise ModelFileError(
            f"Model '{folder.name}' has format {facts['format']}, this version reads formats "
            f"{' and '.join(map(str, FORMATS_READ))}; "
            f"update L2M or fetch the model for this version."
        )
    return facts

"""A model kept as its difference from a released one: of each weight a whole number of steps, a quarter of the bytes.

    python -m train.portable_state keep states/NAME runs/JOB

A training that begins with such a folder (`init`) begins with its weights, to within a hundredth of what they differ by.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from l2m_core.answering.release import load_release
from l2m_core.errors import ConfigError, ModelFileError
from l2m_core.learn.checkpoints import load_tensors, save_tensors, write_text
from l2m_core.learn.inherited_settings import BASE
from l2m_core.learn.inherited_settings import DIFFERENCE as FACTS

NAME = "difference"
STEP = "/step"  # behind a weight's name: the size of its steps
FINGERPRINT = "fingerprint"
MOST_STEPS = 127  # of an int8


def keep(model: nn.Module, base: str, folder: Path) -> None:
    """Writes the model's difference from the released model `base`, which must be of its shape."""
    release = load_release(base, "cpu")
    if model.config != release.config:  # of other heads, even tensors of the same shapes are another model
        raise ConfigError(f"The model is not of the shape of '{base}', so there is no difference to keep.")
    own, others = model.state_dict(), release.module.state_dict()
    kept: dict[str, Tensor] = {}
    for name, value in own.items():
        difference = (value - others[name]).float()
        step = (difference.abs().amax() / MOST_STEPS).clamp_min(torch.finfo(torch.float32).tiny)
        kept[name], kept[name + STEP] = (difference / step).round().to(torch.int8), step.reshape(1)
    folder.mkdir(parents=True, exist_ok=True)
    save_tensors(folder, NAME, kept)
    write_text(folder / FACTS, json.dumps({BASE: base, FINGERPRINT: release.fingerprint}, indent=1))


def load(folder: Path) -> nn.Module:
    """The model that `keep` wrote, ready to be trained."""
    try:
        facts = json.loads((folder / FACTS).read_text())
        base, fingerprint = str(facts[BASE]), str(facts[FINGERPRINT])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"{folder / FACTS} cannot be read; copy the folder again.") from error
    release = load_release(base, "cpu")
    if release.fingerprint != fingerprint:
        raise ModelFileError(
            f"{folder} differs from a model of fingerprint {fingerprint[:12]}, but '{base}' has {release.fingerprint[:12]}. "
            "It can be read where that release is."
        )
    kept, model = load_tensors(folder, NAME), release.module
    try:
        model.load_state_dict({n: value + kept[n] * kept[n + STEP] for n, value in model.state_dict().items()})
    except (KeyError, RuntimeError) as error:
        raise ModelFileError(
            f"The tensors in {folder} are not of a model such as '{base}'; copy the folder again."
        ) from error
    return model.requires_grad_(True).train()

"""The study's own models at its own scale: experiments name them, and whoever has a GPU trains them first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from l2m_core.answering.release import find_model
from l2m_core.errors import ConfigError, ModelFileError
from l2m_core.settings import read_settings

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
FILES = {"predictor": "*_study.yaml", "policy": "*_study_policy*.yaml", "release": "release_*_study*.yaml"}
"""How the configs of each job are named."""


def check_models(names: Sequence[str]) -> None:
    """Refuses, with the commands that make it, a model that is not there."""
    for name in names:
        try:
            find_model(name)
        except ModelFileError as error:
            commands = how_to_make(name)
            if not commands:
                raise
            raise ConfigError(
                f"The model {name} is the study's own, at its own scale, and does not come with this software. It is trained by, "
                f"one after the other: {'; '.join(commands)}. Without a GPU the first two say how many hours they would take."
            ) from error


def how_to_make(folder: str) -> list[str]:
    """The commands that train and release the model, in their order; none for a folder that no config of ours writes."""
    made = _config("release", "folder", folder)
    if made is None:
        return []
    policy = _config("policy", "folder", str(read_settings(made)["run"]))
    assert policy is not None, f"no config trains {made.name}'s policy"
    predictor = _config("predictor", "folder", str(read_settings(policy)["init"]))
    assert predictor is not None, f"no config trains {policy.name}'s predictor"
    steps = {"predictor": predictor, "policy": policy, "release": made}
    return [f"python -m train {job} --config train/configs/{file.name}" for job, file in steps.items()]


def _config(job: str, key: str, value: str) -> Path | None:
    return next((file for file in sorted(CONFIGS.glob(FILES[job])) if read_settings(file).get(key) == value), None)

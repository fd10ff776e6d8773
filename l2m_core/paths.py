"""Where the released models are: at the top of the repository, or inside an installed package."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def pretrained_dir() -> Path:
    """The folder that holds one folder per released model.

    In a checkout that is `pretrained/` beside the package; a wheel carries the same folder inside the package.
    """
    packaged = PACKAGE / "_pretrained"
    return packaged if packaged.is_dir() else PACKAGE.parent / "pretrained"


def model_folders() -> dict[str, Path]:
    """Name to folder of every released model, in the order of their names."""
    return _models_in(pretrained_dir())


def earlier_folders() -> dict[str, Path]:
    """The same of releases that were replaced: nobody is offered one, and what was made with it still replays."""
    return _models_in(pretrained_dir() / "earlier")


def study_folders() -> dict[str, Path]:
    """The same of the study's own models: for its experiments, each for tasks like those that it was trained on."""
    return _models_in(pretrained_dir() / "study")


def all_folders() -> dict[str, Path]:
    """Every model that opens by its name, those that are offered first."""
    return model_folders() | earlier_folders() | study_folders()


def is_released(name: str) -> bool:
    """Whether it is the name of a released model, offered or not."""
    return name in all_folders()


def _models_in(parent: Path) -> dict[str, Path]:
    folders = (weights.parent for weights in sorted(parent.glob("*/*.safetensors")))
    return {folder.name: folder for folder in folders if not folder.name.startswith(".")}  # hidden: being written

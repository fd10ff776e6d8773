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
    folders = (weights.parent for weights in sorted(pretrained_dir().glob("*/*.safetensors")))
    return {folder.name: folder for folder in folders if not folder.name.startswith(".")}  # hidden: being written

"""Changing the manifest of the `folder` that conftest.py makes."""

from pathlib import Path

import yaml


def rewrite(folder: Path, **changes) -> None:
    """The manifest with its first cohort alone, and other settings of it."""
    entry = yaml.safe_load((folder / "manifest.yaml").read_text())["datasets"][0] | changes
    kept = {key: value for key, value in entry.items() if value is not None}
    (folder / "manifest.yaml").write_text(yaml.safe_dump({"datasets": [kept]}))

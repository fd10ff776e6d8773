"""Writes `hashes/*.txt`: every package of the image with its exact version and the hash of its file, as pip resolves them.

    python scripts/package_hashes.py

Run it on the platform that the image is for, in the Python version of the Dockerfile, after a change of constraints.txt. It
asks the package index that pip is set up for, and PyTorch's (`--torch-index`), and installs nothing. Look at the difference
before you commit it: a hash that changed while the version did not means that somebody replaced a file.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[1]
FOLDER = TOP / "hashes"
TORCH = "https://download.pytorch.org/whl/cpu"
HEAD = "# {what}. Written by scripts/package_hashes.py; pip refuses any other file.\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--torch-index", default=TORCH, metavar="URL", help="of PyTorch's CPU builds, or empty for none"
    )
    torch_index = parser.parse_args().torch_index
    FOLDER.mkdir(exist_ok=True)
    write("build.txt", "What the wheel is built with", resolved("hatchling"))
    packages = resolved(f"{TOP}[app,train]", *(["--extra-index-url", torch_index] if torch_index else []))
    write(f"cpu-{platform.machine()}.txt", f"The packages of the image for the CPU on {platform.machine()}", packages)
    return 0


def resolved(*wanted: str) -> dict[str, tuple[str, str]]:
    """Name → version and sha256 of what pip would install, the project itself left out."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        constraints = str(TOP / "constraints.txt")
        subprocess.run([*command, "--report", str(report), "-c", constraints, *wanted], check=True)
        return dict(map(described, filter(is_a_file, json.loads(report.read_text())["install"])))


def is_a_file(item: dict[str, Any]) -> bool:
    return "archive_info" in item["download_info"]


def described(item: dict[str, Any]) -> tuple[str, tuple[str, str]]:
    found = item["metadata"]
    return found["name"], (found["version"], item["download_info"]["archive_info"]["hashes"]["sha256"])


def write(name: str, what: str, packages: dict[str, tuple[str, str]]) -> None:
    lines = [
        f"{package}=={version} --hash=sha256:{digest}\n"
        for package, (version, digest) in sorted(packages.items(), key=lambda item: item[0].lower())
    ]
    (FOLDER / name).write_text(HEAD.format(what=what) + "".join(lines))
    print(f"{len(lines)} packages in {FOLDER.name}/{name}")


if __name__ == "__main__":
    sys.exit(main())

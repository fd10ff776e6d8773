"""Writes the last part of constraints.txt: the packages that only PyTorch's CUDA build brings along.

python scripts/cuda_packages.py

On Linux with x86-64, after a new version of torch in constraints.txt. pip names what PyPI's build requires, and installs
nothing; where the index does not offer a package's description by itself, pip downloads the packages, up to 2.7 GB.
The requirements are kept in tests/packaging/torch_requirements.json: with them, tests show that the constraints hold for
the CUDA build on a machine that has the CPU build.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[1]
CONSTRAINTS = REPOSITORY / "constraints.txt"
KEPT = REPOSITORY / "tests" / "packaging" / "torch_requirements.json"
HEAD = """
# What only PyTorch's CUDA build brings along: PyPI has that build for Linux. Where a package is not installed, its line does
# nothing. Regenerate after a new version of torch: python scripts/cuda_packages.py
"""


def ask_pip(constraints: str) -> dict[str, dict]:
    """Package → its description, for torch and all that it brings along, as PyPI offers it to this interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        file, report = Path(folder) / "constraints.txt", Path(folder) / "report.json"
        file.write_text(constraints, "utf-8")
        # Isolated: the places that this machine's pip is set up for may offer another build.
        pip = [sys.executable, "-m", "pip", "--isolated", "install", "--index-url", "https://pypi.org/simple"]
        subprocess.run(
            [*pip, "--dry-run", "--ignore-installed", "--report", str(report), "--constraint", str(file), "torch"],
            check=True,
        )
        found = [item["metadata"] for item in json.loads(report.read_text("utf-8"))["install"]]
    return {canonicalize_name(metadata["name"]): metadata for metadata in found}


def requirements(described: dict[str, dict]) -> dict[str, dict]:
    """Package → its version, and those of its requirements that hold here with the extras that torch asks for."""
    lines: dict[str, list[str]] = {name: [] for name in described}
    waiting = [Requirement("torch")]
    seen: set[tuple[str, str]] = set()
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        for extra in {"", *asked.extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for line in described[name].get("requires_dist", []):
                marker = Requirement(line).marker
                if line not in lines[name] and (marker is None or marker.evaluate({"extra": extra})):
                    lines[name].append(line)
                    waiting.append(Requirement(line))
    return {name: {"version": described[name]["version"], "requires": sorted(lines[name])} for name in sorted(lines)}


def without_section(constraints: str) -> str:
    return constraints.partition(HEAD)[0]


def with_section(constraints: str, kept: dict[str, dict]) -> str:
    """The constraints, with a line for each kept package that the other lines do not name."""
    others = without_section(constraints)
    named = {canonicalize_name(line.partition("==")[0]) for line in others.splitlines()}
    added = [f"{name}=={package['version']}\n" for name, package in sorted(kept.items()) if name not in named]
    return others + HEAD + "".join(added)


def main() -> None:
    constraints = CONSTRAINTS.read_text("utf-8")
    kept = requirements(ask_pip(without_section(constraints)))
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    CONSTRAINTS.write_text(with_section(constraints, kept), "utf-8")


if __name__ == "__main__":
    main()

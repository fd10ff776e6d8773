"""pyproject.toml and constraints.txt, read."""

import json
import tomllib
from collections.abc import Iterator, Mapping

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.prerequisites import REPOSITORY

SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
EXTRAS = PROJECT["optional-dependencies"]

# Package → its version and requirements, for PyPI's torch (its CUDA build) and all that it brings along.
# Written by scripts/cuda_packages.py.
KEPT = json.loads((REPOSITORY / "tests" / "packaging" / "torch_requirements.json").read_text("utf-8"))


def requirements() -> Iterator[Requirement]:
    """All that pyproject.toml asks for: base, every extra and the build, but for the project's own extras."""
    for lines in (PROJECT["dependencies"], *EXTRAS.values(), SETTINGS["build-system"]["requires"]):
        for requirement in map(Requirement, lines):
            if requirement.name != PROJECT["name"]:
                yield requirement


def pins() -> dict[str, str]:
    """Package → the version in constraints.txt."""
    found = {}
    for line in (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            found[canonicalize_name(name)] = version
    return found


def unmet(kept: Mapping[str, dict], pinned: Mapping[str, str], system: Mapping[str, str]) -> list[str]:
    """What is amiss with the exact versions where the kept torch is installed on that system; empty when nothing is."""
    amiss: list[str] = []
    waiting, seen = [Requirement("torch")], set()
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        exact = pinned.get(name)
        if exact is None:
            amiss.append(f"{name} has no exact version")
        elif not asked.specifier.contains(exact):
            amiss.append(f"{name}=={exact} is not {asked}")
        elif name not in kept or kept[name]["version"] != exact:
            amiss.append(f"what {name}=={exact} requires is not kept")
        for extra in {"", *asked.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                needs = map(Requirement, kept[name]["requires"] if name in kept else [])
                waiting += [need for need in needs if holds(need, {**system, "extra": extra})]
    return sorted(set(amiss))


def holds(need: Requirement, system: Mapping[str, str]) -> bool:
    return need.marker is None or need.marker.evaluate(dict(system))

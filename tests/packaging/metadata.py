"""pyproject.toml and constraints.txt, read."""

import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.prerequisites import REPOSITORY

SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
EXTRAS = PROJECT["optional-dependencies"]


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

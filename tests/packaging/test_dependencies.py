"""What the project asks for, and the exact versions that it is tested with."""

import importlib.metadata
import sys

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.packaging.metadata import EXTRAS, PROJECT, pins, requirements
from tests.packaging.sources import PACKAGES, imports, modules


@pytest.mark.parametrize("requirement", list(requirements()), ids=str)
def test_each_requirement_has_an_exact_version_that_it_admits(requirement: Requirement) -> None:
    exact = pins().get(canonicalize_name(requirement.name))
    assert exact is not None, f"add {requirement.name}==VERSION to constraints.txt"
    assert requirement.specifier.contains(exact)


def test_every_exact_version_is_a_release() -> None:
    for name, version in pins().items():
        assert not Version(version).is_prerelease and Version(version).local is None, name


def installed_needs(requirement: Requirement, seen: dict[str, str]) -> None:
    """Adds the packages that the requirement brings into this environment, and theirs, to `seen`: name → version."""
    for extra in requirement.extras or {""}:
        key = canonicalize_name(requirement.name) + f"[{extra}]"
        if key in seen:
            continue
        distribution = importlib.metadata.distribution(requirement.name)
        seen[key] = distribution.version
        for need in map(Requirement, distribution.requires or []):
            if need.marker is None or need.marker.evaluate({**default_environment(), "extra": extra}):
                installed_needs(need, seen)


def test_every_installed_package_has_its_exact_version() -> None:
    seen: dict[str, str] = {}
    for requirement in requirements():
        if requirement.marker is None or requirement.marker.evaluate():
            installed_needs(requirement, seen)
    installed = {key.partition("[")[0]: Version(version).public for key, version in seen.items()}
    assert len(installed) > 50
    assert installed == {name: version for name, version in pins().items() if name in installed}


def test_every_imported_package_is_asked_for() -> None:
    """Not left to come along with another, which may stop bringing it."""
    asked = {canonicalize_name(requirement.name) for requirement in requirements()}
    providers = importlib.metadata.packages_distributions()
    tops = {name.split(".")[0] for module in modules() for name, _ in imports(module)}
    others = tops - set(sys.stdlib_module_names) - set(PACKAGES) - {"__future__"}
    assert {"numpy", "torch"} <= others
    brought = {top: {canonicalize_name(name) for name in providers.get(top, [])} for top in sorted(others)}
    assert [top for top, names in brought.items() if not asked & names] == []


def test_what_streamlit_signs_people_in_with_is_asked_for() -> None:
    """It imports these only when somebody presses the button."""
    needs = map(Requirement, importlib.metadata.distribution("streamlit").requires or [])
    wanted = {
        canonicalize_name(need.name)
        for need in needs
        if need.marker is not None
        and need.marker.evaluate({**default_environment(), "extra": "auth"})
        and not need.marker.evaluate({**default_environment(), "extra": ""})
    }
    assert wanted and wanted <= {canonicalize_name(requirement.name) for requirement in requirements()}


def test_the_base_is_small() -> None:
    base = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    assert base == {"numpy", "pandas", "pyyaml", "safetensors", "scikit-learn", "torch", "tqdm"}


def test_the_test_extra_holds_all_others() -> None:
    own = [Requirement(line) for line in EXTRAS["test"] if Requirement(line).name == PROJECT["name"]]
    assert own[0].extras == set(EXTRAS) - {"test"}

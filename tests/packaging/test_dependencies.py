"""What the project asks for, and the exact versions that it is tested with."""

import importlib.metadata
import runpy
import sys

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.packaging.metadata import EXTRAS, KEPT, PROJECT, holds, pins, requirements, unmet
from tests.packaging.sources import PACKAGES, imports, modules
from tests.prerequisites import REPOSITORY

# Where PyPI's torch is the CUDA build.
LINUX = {"platform_system": "Linux", "sys_platform": "linux", "os_name": "posix"}
SYSTEMS = [
    {**LINUX, "platform_machine": machine, "python_version": python, "python_full_version": f"{python}.0"}
    for machine in ("x86_64", "aarch64")
    for python in ("3.11", "3.12", "3.13", "3.14")
]


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


# -- PyTorch's CUDA build, which need not be installed here ------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: " ".join([*system.values()][3:5]))
def test_the_exact_versions_hold_for_the_cuda_build(system: dict[str, str]) -> None:
    assert unmet(KEPT, pins(), system) == []


def test_the_cuda_build_is_the_one_whose_requirements_are_kept() -> None:
    assert {"cuda-toolkit", "nvidia-cublas", "triton"} <= set(KEPT)


@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_missing_or_wrong_exact_version_of_the_cuda_build_is_found(name: str) -> None:
    missing = {other: version for other, version in pins().items() if other != name}
    assert unmet(KEPT, missing, SYSTEMS[0]) == [f"{name} has no exact version"]
    assert any(name in words for words in unmet(KEPT, {**pins(), name: "0.0.1"}, SYSTEMS[0]))


@pytest.mark.parametrize("name", sorted(KEPT))
def test_requirements_that_are_not_kept_are_found(name: str) -> None:
    others = {other: package for other, package in KEPT.items() if other != name}
    assert f"what {name}=={pins()[name]} requires is not kept" in unmet(others, pins(), SYSTEMS[0])


def test_the_kept_requirements_are_those_of_the_installed_packages() -> None:
    """Of those that are installed with the exact version: the CPU build of torch requires less, and is left out."""
    compared = 0
    for name, package in KEPT.items():
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if distribution.version == package["version"]:
            compared += 1
            needs = {str(need) for need in map(Requirement, distribution.requires or []) if holds(need, {"extra": ""})}
            kept = {str(need) for need in map(Requirement, package["requires"]) if holds(need, {"extra": ""})}
            assert needs == kept, name
    assert compared > 5


def test_the_constraints_list_what_the_cuda_build_brings() -> None:
    script = runpy.run_path(str(REPOSITORY / "scripts" / "cuda_packages.py"))
    constraints = (REPOSITORY / "constraints.txt").read_text("utf-8")
    assert script["with_section"](constraints, KEPT) == constraints, "run: python scripts/cuda_packages.py"
    added = constraints.removeprefix(script["without_section"](constraints))
    assert "nvidia-cublas==" in added and "numpy==" not in added


def test_only_requirements_with_an_extra_that_torch_asks_for_are_kept() -> None:
    script = runpy.run_path(str(REPOSITORY / "scripts" / "cuda_packages.py"))
    described = {
        "torch": {"version": "2", "requires_dist": ["toolkit[fft]==1", 'yaml; extra == "yaml"']},
        "toolkit": {"version": "1", "requires_dist": ['fft==3; extra == "fft"', 'blas==4; extra == "blas"']},
        "fft": {"version": "3"},
    }
    kept = script["requirements"](described)
    assert {name: package["requires"] for name, package in kept.items()} == {
        "torch": ["toolkit[fft]==1"], "toolkit": ['fft==3; extra == "fft"'], "fft": [],
    }  # fmt: skip


# -- what the project's own code imports -------------------------------------------------------------------------------


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

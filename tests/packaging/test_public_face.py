"""Tests ask the project as its users do: by names without an underscore.

What they need of the inside has a public name in its own room. One file may do otherwise, `tests/golden/inside.py`, which
names for the golden tests all that they take from inside the project.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.packaging.sources import PACKAGES, Module, modules, parse
from tests.prerequisites import REPOSITORY

THE_ONE_DOOR = "tests/golden/inside.py"
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}  # documented, whatever they look like
BY_NAME = {"setattr", "getattr", "delattr", "hasattr"}  # of builtins, and of pytest's monkeypatch


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_NAMED_TUPLES


def private_names(module: Module) -> Iterator[str]:
    """Names that a module keeps to itself: functions, classes, variables, attributes."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names = [node.id if isinstance(node, ast.Name) else node.attr]
        else:
            names = []
        yield from filter(is_private, names)


def touched(module: Module, private: set[str]) -> list[str]:
    """Lines of a test that touch a private name: as an attribute, in an import, or named to `setattr` and its like."""
    return [f"{module.path}:{line} touches {name}" for name, line in reached_inside(module) if name in private] + [
        f"{module.path}:{line} imports {name}" for name, line in imported_from_inside(module)
    ]


def reached_inside(module: Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Call) and (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) in BY_NAME:
            for given in node.args[:2]:
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield given.value.rpartition(".")[2], node.lineno


def imported_from_inside(module: Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            for part in [*(node.module or "").split("."), *(alias.name for alias in node.names)]:
                if is_private(part):
                    yield part, node.lineno


def test_tests_use_the_public_face() -> None:
    private = {name for module in modules() for name in private_names(module)}
    files = [file.relative_to(REPOSITORY) for file in sorted((REPOSITORY / "tests").rglob("*.py"))]
    tests = [parse((REPOSITORY / file).read_text("utf-8"), str(file)) for file in files if str(file) != THE_ONE_DOOR]
    assert len(private) > 100 and len(tests) > 100, "both were found"
    assert [fault for test in tests for fault in touched(test, private)] == []


@pytest.mark.parametrize(
    "text",
    [
        "def test_it(store):\n    store._database.close()",
        "from app.store import _open",
        "from l2m_core._inside import found",
        "def test_it(monkeypatch, store):\n    monkeypatch.setattr(store, '_database', None)",
        "def test_it(monkeypatch):\n    monkeypatch.setattr('app.store.Store._database', None)",
    ],
)
def test_a_private_name_in_a_test_is_found(text: str) -> None:
    private = set(private_names(parse("class Store:\n    def __init__(self):\n        self._database = None")))
    assert private == {"_database"}
    assert len(touched(parse(text, "tests/example.py"), private)) == 1


@pytest.mark.parametrize(
    "text", ["class Visitor:\n    def go(self):\n        self._database = 1", "link._replace(x=1)"]
)
def test_ones_own_private_names_and_those_of_other_packages_are_none_of_it(text: str) -> None:
    assert touched(parse(text, "tests/example.py"), {"_database"}) == []

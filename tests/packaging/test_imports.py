"""Arrows point one way: app → l2m_core ← train; and the core imports with few packages present."""

import sys

import pytest

from tests.packaging.sources import Module, imported_at_the_top, imports, modules, parse

# app starts jobs as processes of their own (`python -m train …`), so it imports nothing of train either.
FORBIDDEN = {"l2m_core": {"app", "train"}, "app": {"train"}, "train": {"app"}}

# All that a training machine has. `l2m_core` must import there, but for the parts named below.
ALWAYS_THERE = {"torch", "numpy", "pandas", "yaml", "safetensors", "tqdm", "l2m_core"}
MAY_NEED_MORE = ("l2m_core.estimator", "l2m_core.methods", "l2m_core.cohort", "l2m_core.diagnostics")


def forbidden_imports(module: Module) -> list[str]:
    banned = FORBIDDEN[module.package]
    return [f"{module.path}:{line} imports {name}" for name, line in imports(module) if name.split(".")[0] in banned]


def extra_imports(module: Module) -> list[str]:
    if module.package != "l2m_core" or module.name.startswith(MAY_NEED_MORE):
        return []
    return [
        f"{module.path}:{line} imports {name}"
        for name, line in imported_at_the_top(module)
        if name.split(".")[0] not in ALWAYS_THERE | sys.stdlib_module_names
    ]


def test_arrows_point_one_way() -> None:
    assert [fault for module in modules() for fault in forbidden_imports(module)] == []


def test_the_core_imports_with_few_packages() -> None:
    assert [fault for module in modules() for fault in extra_imports(module)] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("l2m_core/model/cells.py", "def f():\n    from app.ui import charts"),
        ("l2m_core/paths.py", "import train.jobs as jobs"),
        ("app/main.py", "from train import predictor"),
        ("train/jobs.py", "import app"),
    ],
)
def test_an_arrow_against_the_stream_is_found(path: str, text: str) -> None:
    assert len(forbidden_imports(parse(text, path))) == 1


def test_a_relative_import_stays_inside_its_package() -> None:
    assert [name for name, _ in imports(parse("from ..errors import L2MError", "l2m_core/model/cells.py"))] == [
        "l2m_core.errors.L2MError"
    ]
    assert [name for name, _ in imports(parse("from .batch import TaskBatch", "l2m_core/tasks/__init__.py"))] == [
        "l2m_core.tasks.batch.TaskBatch"
    ]


def test_a_heavy_import_at_the_top_is_found_and_one_inside_a_function_is_not() -> None:
    assert len(extra_imports(parse("import sklearn.metrics", "l2m_core/metrics.py"))) == 1
    assert extra_imports(parse("def f():\n    import sklearn", "l2m_core/metrics.py")) == []


# Modules that import each other in a circle cannot be read one after the other. An import inside a function, or for type
# checkers alone, counts: it hides a circle, it does not open it.
WITHOUT_CIRCLES = tuple(
    f"l2m_core.{name}"
    for name in ("memory", "estimator", "answering", "acquire", "step_through", "methods", "evidence")
)


def arrows(found: list[Module]) -> dict[str, set[str]]:
    """Module → modules of the project that it imports. A package's `__init__` counts only where a name of its own is imported."""
    names = {module.name for module in found}
    graph: dict[str, set[str]] = {}
    for module in found:
        targets = {
            max((n for n in names if f"{name}.".startswith(f"{n}.")), key=len, default="")
            for name, _ in imports(module)
        }
        graph[module.name] = targets - {"", module.name}
    return graph


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """Modules that lie at the end of a path of arrows."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def circles(found: list[Module], within: tuple[str, ...]) -> list[str]:
    graph = arrows(found)
    return sorted(name for name in graph if name.startswith(within) and name in reached(graph, name))


def test_no_module_of_these_rooms_imports_itself_by_way_of_others() -> None:
    assert circles(modules(), WITHOUT_CIRCLES) == []


@pytest.mark.parametrize(
    "text",
    [
        "from l2m_core.acquire.support import near",
        "def f():\n    from l2m_core.acquire import support",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from l2m_core.acquire.support import near",
    ],
)
def test_a_circle_is_found_wherever_its_imports_stand(text: str) -> None:
    modules = [
        parse("from l2m_core.acquire.policies import gain", "l2m_core/acquire/support.py"),
        parse(text, "l2m_core/acquire/policies.py"),
    ]
    assert len(circles(modules, ("l2m_core.acquire",))) == 2

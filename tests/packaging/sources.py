"""The project's own modules as syntax trees, for rules that hold over all of them."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.prerequisites import REPOSITORY

PACKAGES = ("app", "l2m_core", "train")


@dataclass(frozen=True)
class Module:
    path: str  # relative to the repository
    tree: ast.Module

    @property
    def package(self) -> str:
        return Path(self.path).parts[0]

    @property
    def name(self) -> str:
        """Dotted, as imported."""
        parts = Path(self.path).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parse(text: str, path: str = "app/example.py") -> Module:
    return Module(path, ast.parse(text, path))


def modules() -> list[Module]:
    files = [file for package in PACKAGES for file in sorted((REPOSITORY / package).rglob("*.py"))]
    return [parse(file.read_text("utf-8"), str(file.relative_to(REPOSITORY))) for file in files]


def imports(module: Module) -> Iterator[tuple[str, int]]:
    """Dotted name and line of everything the module imports, wherever in it."""
    for node in ast.walk(module.tree):
        yield from imported_by(node, module)


def imported_at_the_top(module: Module) -> Iterator[tuple[str, int]]:
    """The same, but only what importing the module imports: not inside functions, not for type checkers alone."""
    for node in walk_at_import(module.tree):
        yield from imported_by(node, module)


def imported_by(node: ast.AST, module: Module) -> Iterator[tuple[str, int]]:
    """What one statement imports, relative imports made absolute; nothing when it is no import."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, node.lineno
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = module.name.split(".")
            # One dot is the package itself, which for an `__init__.py` is the module.
            kept = parents[: len(parents) - node.level + module.path.endswith("__init__.py")]
            base = ".".join([*kept, *([base] if base else [])])
        for alias in node.names:
            yield f"{base}.{alias.name}", node.lineno


def walk_at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and not for_checkers_alone(child):
            yield child
            yield from walk_at_import(child)


def walk_at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """Everything, functions included, but what stands there for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        branches = child.orelse if isinstance(child, ast.If) and for_checkers_alone(child) else [child]
        for branch in branches:
            yield branch
            yield from walk_at_run_time(branch)


def for_checkers_alone(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


# -- the graph of imports --------------------------------------------------------------------------------------------

Graph = dict[str, dict[str, int]]
"""Module → each of our modules that it imports when it runs, and the line."""


def import_graph(modules: Iterable[Module]) -> Graph:
    known = {module.name: module for module in modules}
    graph: Graph = {name: {} for name in known}
    for name, module in known.items():
        for node in walk_at_run_time(module.tree):
            for imported, line in imported_by(node, module):
                target = module_of(imported, known)
                if target and target != name:
                    graph[name].setdefault(target, line)
    return graph


def module_of(imported: str, known: Iterable[str]) -> str:
    """The module that a dotted name lies in, which may be the name itself; empty where it is none of ours."""
    while imported and imported not in known:
        imported = imported.rpartition(".")[0]
    return imported


def circles(graph: Graph) -> list[list[str]]:
    """Groups of modules that import each other, directly or by way of others."""
    reached = {name: reachable(graph, name) for name in graph}
    groups = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph}
    return sorted(list(group) for group in groups if group)


def reachable(graph: Graph, start: str) -> set[str]:
    """All modules that `start` imports, directly or by way of others. `start` itself only where a circle leads back."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found

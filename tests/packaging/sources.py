"""The project's own modules as syntax trees, for rules that hold over all of them."""

import ast
from collections.abc import Iterator
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
        for_checkers_alone = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and not for_checkers_alone:
            yield child
            yield from walk_at_import(child)

"""Which code a method's results came from: a mark that changes when what is computed may change, not with comments."""

from __future__ import annotations

import ast
import hashlib
import inspect
from functools import lru_cache
from pathlib import Path

import l2m_core.methods as baselines
from l2m_core.methods import METHODS

FOLDER = Path(baselines.__file__).parent
PACKAGE = baselines.__name__


@lru_cache(maxsize=64)
def code_version(method: str) -> str:
    """Of a registered method: over its module and those of the same package that it imports. Empty for others."""
    if method not in METHODS:
        return ""
    module = inspect.getmodule(METHODS[method])
    assert module is not None
    found: dict[str, ast.Module] = {}
    _collect(module.__name__.removeprefix(PACKAGE + "."), found)
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(ast.dump(_without_docstrings(found[name])).encode())
    return digest.hexdigest()[:12]


def _collect(name: str, found: dict[str, ast.Module]) -> None:
    path = FOLDER / f"{name}.py"
    if name in found or not path.is_file():
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found[name] = tree
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE + "."):
            _collect(node.module.removeprefix(PACKAGE + "."), found)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    """Bare strings say something to people only."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                line for line in body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
            ]
    return tree

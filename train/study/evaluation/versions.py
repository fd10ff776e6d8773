"""Which code a method's results came from: a mark that changes when what is computed may change.

Comments, docstrings, formatting and where a module lies leave the mark as it is.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from functools import lru_cache
from pathlib import Path

import l2m_core.methods as methods
from l2m_core.methods import METHODS

FOLDER = Path(methods.__file__).parent
PACKAGE = methods.__name__


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
    for code in sorted(ast.dump(_what_computes(tree)) for tree in found.values()):
        digest.update(code.encode())
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


def _what_computes(tree: ast.Module) -> ast.Module:
    """The tree without bare strings, which speak to people only, and without imports, which say where a name lies."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _computes_nothing(line)]  # type: ignore[attr-defined]
    return tree


def _computes_nothing(line: ast.stmt) -> bool:
    is_text = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
    return is_text or isinstance(line, ast.Import | ast.ImportFrom)

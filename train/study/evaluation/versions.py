"""Which code a method's results came from: a mark that changes when what is computed may change.

Comments, docstrings, formatting and where a module lies leave the mark as it is.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from functools import lru_cache
from pathlib import Path

import l2m_core
from l2m_core.methods import METHODS
from l2m_core.methods.interface import find_method
from l2m_core.plugins import METHODS as METHOD_GROUP
from l2m_core.plugins import is_address, offered

FOLDER = Path(l2m_core.__file__).parent
PACKAGES = ("l2m_core.methods.", "l2m_core.tabular.")


@lru_cache(maxsize=64)
def code_version(method: str) -> str:
    """Of a registered method: over its module and those of `PACKAGES` that it imports. Of another package's: over the file
    that it stands in. Empty for others."""
    if method not in METHODS and not is_address(method) and method not in offered(METHOD_GROUP):
        return ""
    module = inspect.getmodule(find_method(method))
    assert module is not None
    if not module.__name__.startswith("l2m_core."):
        return hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:12]
    found: dict[str, ast.Module] = {}
    _collect(module.__name__, found)
    digest = hashlib.sha256()
    for code in sorted(ast.dump(_what_computes(tree)) for tree in found.values()):
        digest.update(code.encode())
    return digest.hexdigest()[:12]


def _collect(name: str, found: dict[str, ast.Module]) -> None:
    path = FOLDER.joinpath(*name.split(".")[1:]).with_suffix(".py")
    if name in found or not path.is_file():
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found[name] = tree
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGES):
            _collect(node.module, found)


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

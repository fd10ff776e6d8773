"""Which code a method's results came from: a mark that changes when what is computed may change.

Comments, docstrings, formatting and where a module lies leave the mark as it is.

A mark begins with the rule by which it was made. Rows from before this one have none there: they keep the marks that they have,
which are compared by the rule of their time, or, where a form of the model had no mark at all, are taken as they are.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import l2m_core
from l2m_core.methods import METHODS
from l2m_core.methods.interface import find_method
from l2m_core.plugins import METHODS as METHOD_GROUP
from l2m_core.plugins import is_address, offered
from train.study.evaluation import scores
from train.study.evaluation.trial_runs import MethodChoice

FOLDER = Path(l2m_core.__file__).parent
SCORING = Path(scores.__file__)
RULE = "2:"
EARLIER_PACKAGES = ("l2m_core.methods.", "l2m_core.tabular.")
PACKAGES = (
    *EARLIER_PACKAGES,
    "l2m_core.council.",
    "l2m_core.learn.picks",
    "l2m_core.acquire.random_order",
    "l2m_core.tasks.draws",
)
"""Beginnings of the modules that count, where a method's module imports them, by itself or by way of others of these."""
METRICS = "l2m_core.metrics"
COUNCIL = "l2m_core.council.fitting"


@lru_cache(maxsize=64)
def code_version(method: str) -> str:
    """Of a registered method, or a form of the model: over its module, with a council that of councils, those of `PACKAGES` that
    they import, and the scoring of results. Of another package's: over the file that it stands in, and the scoring. Empty for
    others."""
    digest = hashlib.sha256()
    trees = [_parse(SCORING)]
    choice = MethodChoice(method)
    if choice.pretrained:
        trees += _collect("l2m_core.methods.l2m", PACKAGES)
        trees += _collect(COUNCIL, PACKAGES) if choice.council else []
    elif not _is_known(method):
        return ""
    elif (own := _own_modules(method, PACKAGES)) is not None:
        trees += own
    else:
        digest.update(_source_of(method))
    trees += _used_metrics(trees)
    _update(digest, trees)
    return RULE + digest.hexdigest()[:12]


@lru_cache(maxsize=64)
def earlier_code_version(method: str) -> str:
    """The mark by the rule before, which knew neither councils nor picks, metrics or scores."""
    if not _is_known(method):
        return ""
    digest = hashlib.sha256()
    own = _own_modules(method, EARLIER_PACKAGES)
    if own is None:
        digest.update(_source_of(method))
    else:
        _update(digest, own)
    return digest.hexdigest()[:12]


def is_same_code(mark: str, method: str) -> bool:
    """Whether a stored row's mark is that of the method today, by the rule of the row's time."""
    if not mark:
        return MethodChoice(method).pretrained  # their rows had none
    return mark == (code_version(method) if mark.startswith(RULE) else earlier_code_version(method))


def _is_known(method: str) -> bool:
    return method in METHODS or is_address(method) or method in offered(METHOD_GROUP)


def _own_modules(method: str, packages: tuple[str, ...]) -> list[ast.Module] | None:
    """None of a method of another package."""
    module = inspect.getmodule(find_method(method))
    assert module is not None
    return _collect(module.__name__, packages) if module.__name__.startswith("l2m_core.") else None


def _source_of(method: str) -> bytes:
    module = inspect.getmodule(find_method(method))
    assert module is not None
    return inspect.getsource(module).encode()


def _collect(name: str, packages: tuple[str, ...]) -> list[ast.Module]:
    """A module of the core and those of `packages` that it imports, and so on."""
    found: dict[str, ast.Module] = {}
    left = [name]
    while left:
        name = left.pop()
        path = FOLDER.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if name in found or not path.is_file():
            continue
        found[name] = _parse(path)
        left += [module for module, _ in _imported(found[name]) if module.startswith(packages)]
    return list(found.values())


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of each `from module import name`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def _used_metrics(trees: Iterable[ast.Module]) -> list[ast.Module]:
    """The parts of the metrics that these modules use, and those that these use in turn: the others concern no result."""
    wanted: set[str] = set()
    for tree in trees:
        wanted |= {name for module, name in _imported(tree) if module == METRICS}
        wanted |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and _names(node.value) == {"metrics"}
        }
    parts = {name: part for part in _parse(FOLDER / "metrics.py").body for name in _defined(part)}
    found: dict[str, ast.stmt] = {}
    while left := (wanted & set(parts)) - set(found):
        name = min(left)
        found[name] = parts[name]
        wanted |= {other for node in ast.walk(parts[name]) for other in _names(node)}
    return [ast.Module([part], []) for part in found.values()]


def _names(node: ast.AST) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) else set()


def _defined(part: ast.stmt) -> list[str]:
    """Names that a statement of a module's own level defines."""
    if isinstance(part, ast.FunctionDef | ast.ClassDef):
        return [part.name]
    targets = part.targets if isinstance(part, ast.Assign) else []
    return [name for target in targets for name in _names(target)]


def _update(digest: hashlib._Hash, trees: Iterable[ast.Module]) -> None:
    for code in sorted(ast.dump(_what_computes(tree)) for tree in trees):
        digest.update(code.encode())


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

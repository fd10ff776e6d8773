"""All parts of Streamlit that app/streamlit_contact looks up, read from its source."""

from __future__ import annotations

import ast

from tests.packaging.sources import modules


def looked_up(function: str) -> list[tuple[str, ...]]:
    """The texts in each call of `inside` (module, name) or `attribute` (name); calls with a variable name are left out."""
    found = set()
    for module in modules():
        if not module.name.startswith("app.streamlit_contact"):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
                found.add(tuple(str(word.value) for word in node.args if isinstance(word, ast.Constant)))
    wanted = {"inside": 2, "attribute": 1}[function]
    return sorted(words for words in found if len(words) == wanted)


def names() -> list[str]:
    """Of every part, without its module."""
    return sorted({words[-1] for function in ("inside", "attribute") for words in looked_up(function)})

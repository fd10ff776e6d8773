"""Only app/streamlit_contact uses parts of Streamlit that its documentation does not promise."""

import ast
import inspect

import pytest
import streamlit

from tests.packaging.sources import Module, modules, parse

CONTACT = "app.streamlit_contact"
PUBLIC_MODULES = {"column_config"}  # the others that `st` has as attributes are its insides


def undocumented_uses(module: Module) -> list[str]:
    if module.name.startswith(CONTACT):
        return []
    return [f"{module.path}:{line} uses {what}" for node in ast.walk(module.tree) for what, line in uses(node)]


def uses(node: ast.AST) -> list[tuple[str, int]]:
    """What one statement or expression uses of Streamlit beyond `import streamlit as st` and its public names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names if alias.name.split(".")[0] == "streamlit"]
        return [(name, node.lineno) for name in names if name != "streamlit"]
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "streamlit":
        return [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    if isinstance(node, ast.Attribute) and (chain := chain_from_st(node)) and not is_public(chain):
        return [(".".join(["st", *chain]), node.lineno)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and "/_stcore" in node.value:
        return [(node.value, node.lineno)]
    return []


def chain_from_st(node: ast.expr) -> list[str]:
    """The names after `st` in `st.a.b`; empty for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return names[::-1] if isinstance(node, ast.Name) and node.id in ("st", "streamlit") else []


def is_public(chain: list[str]) -> bool:
    is_module = inspect.ismodule(getattr(streamlit, chain[0], None)) and chain[0] not in PUBLIC_MODULES
    return not is_module and not any(name.startswith("_") and not name.endswith("__") for name in chain)


def test_no_other_folder_uses_streamlits_insides() -> None:
    assert [fault for module in modules() for fault in undocumented_uses(module)] == []


@pytest.mark.parametrize(
    "text",
    [
        "from streamlit.runtime import get_instance",
        "from streamlit import config",
        "def f():\n    import streamlit.config",
        "import streamlit as st\nst._bidi_component('x')",
        "import streamlit as st\nst.config.set_option('a', 1)",
        "import streamlit as st\nst.session_state._state",
        "address = '/_stcore/health'",
    ],
)
def test_a_use_elsewhere_is_found(text: str) -> None:
    assert undocumented_uses(parse(text, "app/ui/state.py")) != []
    assert undocumented_uses(parse(text, "app/streamlit_contact/media.py")) == []


def test_public_names_are_allowed() -> None:
    text = (
        "import streamlit as st\nst.button('x')\nst.column_config.NumberColumn()\nst.query_params['a']\nst.__version__"
    )
    assert undocumented_uses(parse(text, "app/ui/state.py")) == []

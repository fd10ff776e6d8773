"""Nothing that a person gives us is ever run: calls that could run it stand nowhere in the project."""

import ast

import pytest

from tests.packaging.sources import Module, imports, modules, parse

UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {
    "eval",
    "exec",
    "compile",
    "os.popen",
    "os.system",
    "pandas.eval",
    "pandas.read_pickle",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "yaml.full_load",
    "yaml.load",
    "yaml.load_all",
    "yaml.unsafe_load",
    "yaml.unsafe_load_all",
}
UNSAFE_METHODS = {"read_pickle", "to_pickle"}


def names_in_use(module: Module) -> dict[str, str]:
    """Local name → what it stands for, from the module's imports: `import numpy as np` gives np → numpy."""
    names = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def full_name(function: ast.expr, names: dict[str, str]) -> str:
    """`np.load` → numpy.load; empty for anything that is not a plain dotted name."""
    if isinstance(function, ast.Name):
        return names.get(function.id, function.id)
    if isinstance(function, ast.Attribute):
        owner = full_name(function.value, names)
        return f"{owner}.{function.attr}" if owner else ""
    return ""


def keyword_is(call: ast.Call, keyword: str, value: bool) -> bool:
    """Whether the call gives the keyword exactly this constant."""
    return any(
        word.arg == keyword and isinstance(word.value, ast.Constant) and word.value.value is value
        for word in call.keywords
    )


def is_unsafe(call: ast.Call, names: dict[str, str]) -> bool:
    name = full_name(call.func, names)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = {word.arg for word in call.keywords}
    return (
        name in UNSAFE_CALLS
        or method in UNSAFE_METHODS
        # `model.eval()` is innocent; `frame.eval(text)` runs the text.
        or (method == "eval" and bool(call.args))
        or (name == "torch.load" and not keyword_is(call, "weights_only", True))
        or ("allow_pickle" in given and not keyword_is(call, "allow_pickle", False))
        or ("shell" in given and not keyword_is(call, "shell", False))
    )


def unsafe_places(module: Module) -> list[str]:
    names = names_in_use(module)
    calls = [
        f"{module.path}:{node.lineno} calls {ast.unparse(node.func)}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and is_unsafe(node, names)
    ]
    loaded = [
        f"{module.path}:{line} imports {name}" for name, line in imports(module) if name.split(".")[0] in UNSAFE_MODULES
    ]
    return calls + loaded


def test_no_module_runs_what_it_is_given() -> None:
    assert [place for module in modules() for place in unsafe_places(module)] == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from cloudpickle import loads",
        "import joblib.numpy_pickle",
        "import yaml\nyaml.load(text)",
        "from yaml import unsafe_load as read\nread(text)",
        "import torch\ntorch.load(path)",
        "import torch\ntorch.load(path, weights_only=False)",
        "import torch as t\nt.load(path, weights_only=choice)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import pandas as pd\npd.read_pickle(path)",
        "frame.eval('a + b')",
        "eval(text)",
        "exec(text)",
        "import os\nos.system(command)",
        "from os import popen\npopen(command)",
        "import subprocess\nsubprocess.run(command, shell=True)",
        "from subprocess import Popen\nPopen(command, shell=choice)",
    ],
)
def test_an_unsafe_place_is_found(text: str) -> None:
    assert len(unsafe_places(parse(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "model.eval()",
        "import yaml\nyaml.safe_load(text)",
        "import torch\ntorch.load(path, weights_only=True)",
        "import numpy as np\nnp.load(path, allow_pickle=False)",
        "import subprocess\nsubprocess.run([program])",
        "import re\nre.compile(pattern)",
        "import torch\ntorch.compile(model)",
    ],
)
def test_a_safe_place_is_left_alone(text: str) -> None:
    assert unsafe_places(parse(text)) == []

"""Arrows point one way: app → l2m_core ← train, and from the upper rooms of each to the lower ones.

No module imports itself by way of others, and the core imports with few packages present.
"""

import sys

import pytest

from tests.packaging.sources import (
    Graph,
    Module,
    circles,
    import_graph,
    imported_at_the_top,
    imports,
    modules,
    parse,
)
from tests.prerequisites import REPOSITORY

# app starts jobs as processes of their own (`python -m train …`), so it imports nothing of train either.
FORBIDDEN = {"l2m_core": {"app", "train"}, "app": {"train"}, "train": {"app"}}

# All that a training machine has. `l2m_core` must import there, but for the parts named below.
ALWAYS_THERE = {"torch", "numpy", "pandas", "yaml", "safetensors", "tqdm", "l2m_core"}
MAY_NEED_MORE = (
    "l2m_core.estimator",
    "l2m_core.methods",
    "l2m_core.tabular",
    "l2m_core.council",
    "l2m_core.cohort",
    "l2m_core.diagnostics",
)


# The rooms, the lowest first. A module may import from its own room and its own row, and from every row below.
# A module that stands in no room has to be given a row here.
ROWS = (
    # l2m_core: texts and tables, then cohorts, then models that answer, then what is built on their answers.
    ("l2m_core", "l2m_core.errors", "l2m_core.lazy", "l2m_core.paths"),
    ("l2m_core.tables", "l2m_core.schema"),
    ("l2m_core.settings", "l2m_core.plugins"),
    ("l2m_core.metrics", "l2m_core.tasks", "l2m_core.model"),
    ("l2m_core.diagnostics",),
    ("l2m_core.cohort",),
    ("l2m_core.loaders", "l2m_core.answering", "l2m_core.learn"),
    ("l2m_core.acquire",),
    ("l2m_core.tabular",),
    ("l2m_core.council",),
    ("l2m_core.step_through",),
    ("l2m_core.memory", "l2m_core.patients"),
    ("l2m_core.methods", "l2m_core.evidence", "l2m_core.estimator"),
    ("l2m_core.cli",),
    # train: settings and tasks, then what makes models, then what measures them.
    (
        "train",
        "train.engines",
        "train.priors",
        "train.prior_data",
        "train.data_plugins",
        "train.patients_file",
        "train.difference",
    ),
    ("train.initial_model", "train.portable_state"),
    ("train.hours",),
    ("train.pretraining",),
    ("train.predictor", "train.policy", "train.gain", "train.finetune", "train.release", "train.acquire"),
    ("train.study",),
    ("train.leg",),
    ("train.__main__",),
    # app: what is kept, then background work, then what hosts the pages, then the pages, then what starts it all.
    ("app", "app.file_lock", "app.private_files", "app.settings", "app.cache", "app.examples"),
    ("app.streamlit_contact",),
    ("app.store",),
    ("app.catalogue",),
    ("app.jobs",),
    ("app.host",),
    ("app.ui",),
    ("app.views",),
    ("app.main", "app.asgi"),
    ("app.server",),
    ("app.__main__", "app.api"),
)
ROW_OF = {room: number for number, row in enumerate(ROWS) for room in row}


def room_of(module: str) -> str:
    """The folder below the package; for a module that lies in no such folder its own name."""
    return ".".join(module.split(".")[:2])


def upward_imports(graph: Graph) -> list[str]:
    """Imports of a room in a higher row, and modules without a row."""
    homeless = [f"{module} has no row in the table" for module in graph if room_of(module) not in ROW_OF]
    upward = [
        f"{module}, line {line}, imports {target}, which lies above {room_of(module)}"
        for module, targets in graph.items()
        for target, line in targets.items()
        if ROW_OF.get(room_of(target), 0) > ROW_OF.get(room_of(module), 0)
    ]
    return [*homeless, *upward]


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


def test_no_room_imports_from_a_room_above_it() -> None:
    assert upward_imports(import_graph(modules())) == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(import_graph(modules())) == []


def test_the_top_of_the_core_holds_at_most_a_dozen_modules() -> None:
    files = [file.name for file in (REPOSITORY / "l2m_core").glob("*.py") if file.name != "__init__.py"]
    assert 6 < len(files) <= 12, f"What does one thing belongs in a room: {sorted(files)}"


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


def graph_of(**sources: str) -> Graph:
    """Of modules by their path, with `__` for each slash."""
    return import_graph([parse(text, f"{name.replace('__', '/')}.py") for name, text in sources.items()])


def test_a_circle_is_found_by_way_of_others_and_inside_functions() -> None:
    first, second, third = "import app.ui.b", "def f():\n    from app.ui import c", "from app.ui.a import x"
    assert circles(graph_of(app__ui__a=first, app__ui__b=second, app__ui__c=third)) == [
        ["app.ui.a", "app.ui.b", "app.ui.c"]
    ]
    assert circles(graph_of(app__ui__a=first, app__ui__b=second, app__ui__c="")) == []


def test_what_only_type_checkers_import_makes_no_circle() -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from app.ui import b\nelse:\n    {}"
    there = {"app__ui__b": "import app.ui.a"}
    assert circles(graph_of(app__ui__a=typed.format("b = None"), **there)) == []
    assert circles(graph_of(app__ui__a=typed.format("from app.ui import b"), **there)) == [["app.ui.a", "app.ui.b"]]


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("app__jobs__runner", "app__host__services"),
        ("app__store__jobs", "app__jobs__runner"),
        ("app__host__downloads", "app__ui__state"),
        ("app__streamlit_contact__media", "app__host__downloads"),
        ("app__ui__state", "app__views__cohort"),
        ("l2m_core__tables__reading", "l2m_core__cohort"),
        ("l2m_core__answering__release", "l2m_core__acquire__policies"),
        ("train__predictor", "train__study__evaluate"),
    ],
)
def test_an_import_upwards_is_found(lower: str, upper: str) -> None:
    name = upper.replace("__", ".")
    (fault,) = upward_imports(graph_of(**{lower: f"def f():\n    import {name}", upper: ""}))
    assert f"line 2, imports {name}" in fault
    assert upward_imports(graph_of(**{lower: "", upper: f"import {lower.replace('__', '.')}"})) == []


def test_a_module_without_a_room_is_found() -> None:
    assert upward_imports(graph_of(app__loft__attic="")) == ["app.loft.attic has no row in the table"]
    assert upward_imports(graph_of(l2m_core__attic="")) == ["l2m_core.attic has no row in the table"]

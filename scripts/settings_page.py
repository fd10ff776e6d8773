"""Writes docs/settings.md, every setting of every job, from the dataclasses that hold them: their words are the page's.

python scripts/settings_page.py            writes the page
A test fails while the page differs from the dataclasses, or while a setting has no words.
"""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from l2m_core.tasks.registry import PRIORS
from train.__main__ import JOBS, settings_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
HEAD = """# Settings

Every setting of every job and prior, written from the code by `python scripts/settings_page.py`. A job reads them from its
YAML file; `key=value` after the file replaces one, with dots for the inner ones: `loop.lr=0.001`, `stages.0.steps=200`,
`prior.settings.outcome=classes`. An unknown one is refused by name. What the jobs do is in [training](training.md).
"""


def kinds() -> list[tuple[str, list[type]]]:
    """Heading → dataclasses, each met once: jobs, what they hold, priors, what those hold."""
    jobs = [settings_of(name) for name in JOBS]
    priors = [entry.config for entry in PRIORS.values()]
    seen: list[type] = []
    inside_priors = [kind for prior in priors for kind in held_by(prior)]
    inside_jobs = [kind for job in jobs for kind in held_by(job)]
    found = []
    for heading, wanted in (
        ("Jobs", jobs),
        ("What jobs hold", inside_jobs),
        ("Priors", priors),
        ("What priors hold", inside_priors),
    ):
        fresh = [kind for number, kind in enumerate(wanted) if kind not in seen and kind not in wanted[:number]]
        seen += fresh
        found.append((heading, fresh))
    return found


def held_by(kind: type) -> Iterator[type]:
    """Dataclasses that are, or lie in, the fields of another."""
    import typing

    for hint in typing.get_type_hints(kind).values():
        for inner in (hint, *typing.get_args(hint)):
            if isinstance(inner, type) and dataclasses.is_dataclass(inner):
                yield inner
                yield from held_by(inner)


def words_of(kind: type) -> dict[str, str]:
    """Field → the text below it in the source, inherited ones included."""
    words: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                assert isinstance(field.target, ast.Name)
                words[field.target.id] = " ".join(str(below.value.value).split())
    return words


def undescribed() -> list[str]:
    found = [(kind, field.name) for _, group in kinds() for kind in group for field in dataclasses.fields(kind)]
    return [f"{kind.__module__}.{kind.__name__}.{name}" for kind, name in found if not words_of(kind).get(name)]


def default_of(field: Any) -> str:
    missing = dataclasses.MISSING
    if field.default is missing and field.default_factory is missing:
        return "needed"
    value = field.default if field.default is not missing else field.default_factory()
    if dataclasses.is_dataclass(value):
        return "its own defaults"
    return "none" if value in ("", (), {}, None) else f"`{value}`"


def section(kind: type) -> str:
    name = next((name for name, entry in PRIORS.items() if entry.config is kind), None)
    name = name or next((name for name, text in JOBS.items() if text.endswith(f".{kind.__name__}")), None)
    title = f"{name} (`{kind.__name__}`)" if name else f"`{kind.__name__}`"
    opening = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    words = words_of(kind)
    rows = [
        f"| `{field.name}` | {default_of(field)} | {words.get(field.name, '').replace('|', chr(92) + '|')} |"
        for field in dataclasses.fields(kind)
    ]
    return "\n".join([f"### {title}", "", opening, "", "| setting | default | meaning |", "| --- | --- | --- |", *rows])


def page() -> str:
    parts = [HEAD]
    for heading, group in kinds():
        parts += [f"## {heading}\n", *(section(kind) + "\n" for kind in group)]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

"""Jobs that measure: `evaluate` compares methods, `reproduce` runs the study's experiments."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from app.jobs import folders, trainer
from app.jobs.work import Ending, Stopped, Work
from l2m_core import plugins
from l2m_core.errors import ConfigError, L2MError
from l2m_core.plugins import is_address
from l2m_core.schema import did_you_mean
from l2m_core.settings import NO_LINES

EVALUATE, REPRODUCE = "evaluate", "reproduce"
OUT, PARTIAL, FOLDER = "out", "partial", "folder"
REAL = "real"  # the suite of an evaluation that names none
SUITES = (REAL, "synthetic")
_COUNT = re.compile(r"^(\d+)/(\d+) ")

# Settings of `evaluate` that are a person's to choose; where files go and how many processes work is not.
OPTIONS: dict[str, type] = {
    "suite": str,
    "methods": list,
    "cohorts": list,
    "contexts": list,
    "missing": list,
    "seeds": list,
    "budget": int,
    "test_rows": int,
    "tasks": int,
}
OURS = "l2m"  # the model itself as a method; l2m_random and others are its policies
MAY_BE_0 = ("budget",)  # then only what is known at the start is predicted from
TEMPLATE = """# Policies of one model on drawn tasks, where the truth is known. `suite: real` compares methods on real cohorts,
# where this computer has them.
suite: synthetic
tasks: 4
budget: 6
"""


def experiments() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (trainer.home() / "study" / "experiments" / "configs").glob("*.yaml")))


def options(text: str) -> list[str]:
    """The settings of `evaluate` as words of its command line."""
    words: list[str] = []
    settings = trainer.read_mapping(text)
    for name, value in settings.items():
        if name not in OPTIONS:
            raise ConfigError(f"There is no setting '{name}'. Known: {', '.join(OPTIONS)}.")
        values = value if isinstance(value, list) else [value]
        if (OPTIONS[name] is not list and isinstance(value, list)) or not values:
            raise ConfigError(f"'{name}' takes one value, not a list." if values else f"'{name}' needs a value.")
        least = 0 if name in MAY_BE_0 else 1
        if OPTIONS[name] is int and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ConfigError(f"'{name}' is {value!r}; it must be a whole number, {least} or more.")
        if not all(isinstance(each, str | int | float) and not str(each).startswith("-") for each in values):
            raise ConfigError(f"'{name}' must be a plain number or text, or a list of them.")
        _check_names(name, values)
        if name == "suite":
            _refuse_unknown("suite", str(value), SUITES)
        elif name == "methods":
            known = _methods()
            for method in map(str, values):
                if not method.startswith(f"{OURS}_"):  # a policy, or a council's, which the trainer knows
                    _refuse_unknown("method", method, known)
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    if settings.get("suite", REAL) == REAL and not _data_folder().is_dir():
        raise ConfigError(
            "There are no real cohorts on this computer. Write `suite: synthetic`, which draws its tasks."
        )
    return words


def _methods() -> list[str]:
    import l2m_core.methods.l2m  # here, as it takes its time; it makes the model and the base rate known as well

    return [*l2m_core.methods.METHODS, *plugins.offered(plugins.METHODS)]


def _refuse_unknown(what: str, name: str, known: Sequence[str]) -> None:
    """Before a job begins that could only fail."""
    if name not in known:
        raise ConfigError(f"There is no {what} '{name:.60}'.{did_you_mean(name, known)}")


def overrides(text: str) -> list[str]:
    """Settings of an experiment in place of its scale's, as `key=value`."""
    settings = trainer.read_mapping(text)
    if not all(isinstance(name, str) and name.isidentifier() for name in settings):
        raise ConfigError(NO_LINES)
    _check_names("", settings)
    return [f"{name}={_on_one_line(value)}" for name, value in settings.items()]


def _on_one_line(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=math.inf)
    return text.removesuffix("\n...\n").strip()  # the end of a document, after a lone value


def _check_names(where: str, value: Any) -> None:
    """Refuses paths: models, cohorts and methods go by their names."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == FOLDER:
                raise ConfigError(f"'{FOLDER}' is decided by this installation. Remove it from the settings.")
            _check_names(str(name), inner)
            _check_names(where, name)
    elif isinstance(value, list | tuple | set):
        for inner in value:
            _check_names(where, inner)
    elif isinstance(value, str) and is_address(value):
        raise ConfigError(f"'{where}' names code to import ({value}), which is done from the command line only.")
    elif isinstance(value, str) and (value in (".", "..") or any(mark in value for mark in "/\\\0~")):
        raise ConfigError(f"'{where}' must be a plain name, not a place on this computer.")


def run(work: Work) -> Ending:
    out, partial = work.folder / OUT, work.folder / PARTIAL
    out.mkdir(exist_ok=True)
    output = ["--out", str(out), "--partial", str(partial), "--workers", "1"]
    config = work.config
    if work.job.kind == EVALUATE:
        known = work.catalogue.model_names(work.job.owner)
        if config["model"] not in known:
            raise ConfigError(f"There is no model '{config['model']}' any more. Choose another one.")
        arguments = [EVALUATE, *options(config["yaml"]), "--model", str(known[config["model"]]), *output]
    else:
        arguments = [REPRODUCE, config["experiment"], *overrides(config["yaml"]), "--scale", config["scale"], *output]
        if not _data_folder().is_dir():
            arguments += ["--data", str(out)]  # stand-ins take the place of data sets that are not here
    status = trainer.run(work, arguments, lambda: progress(work.folder))
    if work.stop_asked.is_set() and status != 0:
        raise Stopped
    if status == trainer.REFUSED:
        raise ConfigError(folders.last_words(work.folder) or "The settings were refused.")
    if status != 0:
        raise L2MError("The work ended before its time; its log may say why. It can be resumed.")
    return Ending("done", "Finished; the results are below.", {"files": files(work.folder)})


def files(folder: Path) -> list[str]:
    found = sorted(path for path in (folder / OUT).rglob("*") if path.is_file())
    return [path.relative_to(folder / OUT).as_posix() for path in found][:200]


def progress(folder: Path) -> tuple[float, str]:
    """By the trainer's own count where it gives one; else by what it has finished."""
    counts = [match for line in folders.tail(folder, 200).splitlines() if (match := _COUNT.match(line))]
    if counts:
        done, whole = int(counts[-1][1]), int(counts[-1][2])
        return min(1.0, done / max(1, whole)), f"{done:,} of {whole:,} parts are finished."
    finished = sum(_lines(path) for path in (folder / PARTIAL).rglob("*.jsonl"))
    return 0.0, f"{finished:,} results so far."


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _data_folder() -> Path:
    return trainer.home().parent.parent / "shared" / "data"


def describe(config: dict[str, Any]) -> str:
    return str(config.get("experiment") or config.get("model") or "")

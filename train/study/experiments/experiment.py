"""The shape of an experiment: settings, jobs, work, table, figure, verdict.

Each experiment is a module of this folder that holds

    TITLE, CLAIM                         what it is, and what the study says it shows, in the study's own words; "" if nothing
    RULE                                 when that counts as seen: written before the experiment is run, and published
    EFFECT                               the effect that the study states, or the smallest one worth seeing
    GATED                                the method whose model must pass the gates before a verdict counts; "" if none
    SETTINGS                             a frozen dataclass; `configs/NAME.yaml` gives it at the scales that there are
    jobs(settings, data) -> [Job]        what can be done side by side; each carries its own seed
    work(job) -> [record, …]             in a worker process; records are plain values
    table(records) -> DataFrame          what is published
    figure(table) -> plotly figure
    verdict(records, table) -> ClaimVerdict   whether the claim is seen, by that rule
    caption(settings, data) -> [str]     sentences that a reader of the table needs
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import date
from functools import partial as partial_of
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from l2m_core.answering.release import FACTS, find_model
from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import write_bytes, write_text
from l2m_core.settings import apply_override, build_settings, read_settings, to_plain
from train.engines import fan_out
from train.study.evaluation.report import markdown_table
from train.study.evaluation.trial_runs import MethodChoice, load_model
from train.study.evaluation.versions import code_version, earlier_code_version
from train.study.experiments import figures, power
from train.study.experiments.families import Family, data_marks
from train.study.experiments.study_models import check_models
from train.study.experiments.verdicts import ClaimVerdict, gated, gates_note, tidy, with_units
from train.study.resumable_table import ResumableTable

EXPERIMENTS = (
    "uncertainty",
    "acquisition",
    "headroom",
    "planning",
    "context_length",
    "informative",
    "zero_shot",
    "own_covariates",
    "adaptivity",
    "real_missingness",
    "ablations",
    "gradients",
    "runtimes",
    "policy_maps",
)
SCALES = ("small", "reduced", "study")
NO_WORDS = "None: it claims nothing here."


@dataclass(frozen=True)
class Job:
    """A piece of an experiment; `key` names it within the experiment."""

    key: str
    settings: Any
    part: Any
    data: Path
    methods: tuple[str, ...] = ()
    """The only methods that the piece runs, on the task that `part` names; empty: it may use anything of `settings`."""


def find(name: str) -> ModuleType:
    if name not in EXPERIMENTS:
        raise ConfigError(f"There is no experiment {name!r}. Choose all, or one of: {', '.join(EXPERIMENTS)}.")
    return importlib.import_module(f"train.study.experiments.{name}")


def scales_of(name: str) -> tuple[str, ...]:
    """Not every experiment has models of its own for the scale "reduced"."""
    return tuple(_scales(name))


def _scales(name: str) -> dict[str, Any]:
    return read_settings(Path(__file__).parent / "configs" / f"{name}.yaml")


def experiment_settings(name: str, scale: str, overrides: Sequence[str] = ()) -> Any:
    """The settings of one scale; `key=value` overrides replace single ones."""
    scales = _scales(name)
    if scale not in scales:
        raise ConfigError(f"{name} has no scale {scale!r}; choose one of {', '.join(scales)}.")
    plain = scales[scale]
    for override in overrides:
        apply_override(plain, override)
    return build_settings(find(name).SETTINGS, plain, name)


def version_of(job: Job, code_mark: Callable[[str], str] = code_version) -> str:
    """Changes with all that the job's records depend on: settings, models, and the code of methods that learn from the
    task, by `code_mark`. Another model leaves the records of such methods as they are, and so does another number of tasks."""
    plain = {"settings": to_plain(job.settings), "part": to_plain(job.part)}
    code: list[str] = []
    if plain["settings"].get("baselines") == "own":
        plain = _without(plain, "baselines")  # records from before there was a choice
    if job.methods:
        own = {name: given for name, given in _method_settings(job.settings).items() if name in job.methods}
        plain = _without(plain, "families", "methods", "tasks", "method_settings")
        if own:
            plain["method_settings"] = own
        code = [code_mark(name) for name in job.methods]
        plain = _without(plain, "device")  # of the fine-tuning, which is a piece of its own
        if not any(MethodChoice(name).pretrained for name in job.methods):
            plain = _without(plain, "model")
    facts = [(find_model(name) / FACTS).read_text() for name in models_of(plain)]
    return hashlib.sha256(json.dumps([plain, facts, code], sort_keys=True, default=str).encode()).hexdigest()[:16]


def mark_of(job: Job, partial: ResumableTable) -> dict[str, str]:
    """Under which a job's records are kept. Those that were marked by an earlier rule, and are still the same by it, stay."""
    data = "; ".join(data_marks(_families_in(job.part) or _families_in(job.settings), job.data))
    present, earlier = (
        {"job": job.key, "version": version_of(job, rule), "data": data}
        for rule in (code_version, earlier_code_version)
    )
    return earlier if partial.has(earlier) and not partial.has(present) else present


def _families_in(value: Any) -> list[Family]:
    """Those that a job's part or its settings name, wherever they stand in them."""
    if isinstance(value, Family):
        return [value]
    inner = value if isinstance(value, list | tuple) else vars(value).values() if is_dataclass(value) else ()
    return [family for one in inner for family in _families_in(one)]


def _method_settings(settings: Any) -> dict[str, Any]:
    return dict(getattr(settings, "method_settings", {}))


def models_of(plain: Any) -> list[str]:
    """Names of the models in plain settings."""
    return sorted({name for name in _named(plain, "model") if name})


def _named(value: Any, key: str) -> list[Any]:
    if isinstance(value, dict):
        return [v for k, v in value.items() if k == key] + [x for v in value.values() for x in _named(v, key)]
    return [x for v in value for x in _named(v, key)] if isinstance(value, list) else []


def _without(value: Any, *keys: str) -> Any:
    if isinstance(value, dict):
        return {k: _without(v, *keys) for k, v in value.items() if k not in keys}
    return [_without(v, *keys) for v in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Folders:
    """Where things are read, kept and written."""

    data: Path
    partial: Path
    out: Path


@dataclass
class Course:
    """An experiment on its way: its jobs, and what is finished of them."""

    name: str
    module: ModuleType
    settings: Any
    partial: ResumableTable
    jobs: list[Job]
    marks: list[dict[str, str]]
    """Of each job: its key, and the version of all that its records depend on."""
    fan_out: Callable[..., Iterator[tuple[int, list[dict]]]]
    say: Callable[[str], None]

    def left(self) -> list[int]:
        return [number for number, mark in enumerate(self.marks) if not self.partial.has(mark)]

    def run(self, numbers: list[int], done: int, whole: int) -> None:
        """done: how many of `whole` jobs came before these."""
        results = self.fan_out(self.module.work, [self.jobs[number] for number in numbers])
        for more, (index, records) in enumerate(results, 1):
            mark = self.marks[numbers[index]]
            self.partial.append([{**mark, "rows": records}])
            self.say(f"{self.name} {done + more}/{whole}: {mark['job']}")

    def judged(self, numbers: Sequence[int]) -> tuple[list[dict], pd.DataFrame, ClaimVerdict]:
        """Records, table and verdict of these jobs."""
        finished = [self.partial.records[self.partial.key(self.marks[number])] for number in numbers]
        records = with_units([row for record in finished for row in record["rows"]], self.settings)
        table = self.module.table(records)
        return records, table, self.module.verdict(records, table)

    def finish(self) -> tuple[list[dict], pd.DataFrame, ClaimVerdict, str]:
        """Runs what is left, the first tasks first, and with them states the power: records, table, verdict, statement."""
        left, first = self.left(), power.first_jobs([job.part for job in self.jobs])
        others = [number for number in left if number not in first]
        self.run([number for number in left if number in first], 0, len(left))
        stated = power.mark_of([self.marks[number] for number in first])
        if first and not self.partial.has(stated):
            before = 0 < len(others) == len(self.jobs) - len(first)
            needs = self.judged(first)[2].needs
            text = power.statement(needs, self.settings.families, by_first=True, before=before)
            self.partial.append([{**stated, "text": text}])
        self.run(others, len(left) - len(others), len(left))
        records, table, verdict = self.judged(range(len(self.jobs)))
        if first:
            return records, table, verdict, self.partial.records[self.partial.key(stated)]["text"]
        text = power.statement(verdict.needs, self.settings.families, by_first=False, before=False)
        return records, table, verdict, text


def reproduce(
    name: str,
    scale: str,
    folders: Folders,
    command: str,
    *,
    engine: str = "processes",
    workers: int = 1,
    overrides: Sequence[str] = (),
    say=print,
) -> ClaimVerdict:
    """Runs what is not done yet, then writes NAME.csv, NAME-tasks.csv.gz, NAME.md and NAME.html."""
    module, settings = find(name), experiment_settings(name, scale, overrides)
    check_models(models_of(to_plain(settings)))
    partial = ResumableTable(folders.partial / f"{name}-{scale}.jsonl", ("job", "version"))
    jobs = module.jobs(settings, folders.data)
    if not jobs:
        raise ConfigError(
            f"The settings of {name} leave nothing to run; name at least one family of tasks in families."
        )
    marks = [mark_of(job, partial) for job in jobs]
    gpus = int(getattr(settings, "device", "cpu").startswith("cuda"))
    spread = partial_of(fan_out, engine=engine, workers=workers, gpus=gpus)
    course = Course(name, module, settings, partial, jobs, marks, spread, say)
    records, table, found, stated = course.finish()
    verdict = gated(found, records, module.GATED)
    captions = [scale_note(scale), *model_notes(settings), *module.caption(settings, folders.data), *failures(records)]
    notes = {"Power.": stated, "Gates.": gates_note(records, module.GATED)} if module.CLAIM else {}
    write(name, scale, module, table, verdict, captions, command, folders.out, notes)
    tasks = tidy(records).assign(scale=scale).to_csv(index=False, float_format="%.6g")
    # A tenth of the size; without the time of writing, so that the same records are the same file.
    write_bytes(folders.out / f"{name}-tasks.csv.gz", gzip.compress(tasks.encode(), mtime=0))
    return verdict


def model_notes(settings: Any) -> list[str]:
    """Which models, by the fingerprints of their weights."""
    return [
        f"Model {Path(n).name}, fingerprint {load_model(n).fingerprint[:12]}." for n in models_of(to_plain(settings))
    ]


def scale_note(scale: str) -> str:
    return {
        "small": "Scale small: fewer and smaller tasks than the study's, for two processor cores.",
        "reduced": "Scale reduced: the study's own models, reduced to what one processor core trains, on tasks like theirs.",
        "study": "Scale study: the study's own settings, where it gives them.",
    }[scale]


def failures(records: Sequence[dict]) -> list[str]:
    """A sentence for each method that failed anywhere: a reader must know what is missing from the table."""
    errors: dict[str, list[str]] = {}
    for record in records:
        if record.get("error"):
            errors.setdefault(record["method"], []).append(str(record["error"]).splitlines()[0])
    return [
        f"{figures.named(method)} failed on {len(found)} tasks, which its numbers leave out: {found[0]}"
        for method, found in errors.items()
    ]


def write(
    name: str,
    scale: str,
    module: ModuleType,
    table: pd.DataFrame,
    verdict: ClaimVerdict,
    captions: Sequence[str],
    command: str,
    out: Path,
    notes: dict[str, str],
) -> None:
    """Table and figure say the scale themselves: they travel without their page.

    notes: further sentences, under their headings, between the effect and the verdict.
    """
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / f"{name}.csv", table.assign(scale=scale).to_csv(index=False, float_format="%.6g"))
    pictures = figures.save(figures.entitled(module.figure(table), f"{module.TITLE} (scale {scale})"), out, name)
    lines = [
        f"# {module.TITLE}",
        "",
        f"`{command}` · {date.today().isoformat()}",
        "",
        *(f"{caption}  " for caption in captions),
        "",
        f"**The study's words.** {module.CLAIM or NO_WORDS}",
        "",
        f"**Seen when.** {module.RULE}",
        "",
        f"**The effect.** {module.EFFECT}",
        "",
        *(line for heading, text in notes.items() for line in (f"**{heading}** {text}", "")),
        f"**Verdict: {verdict.status}.** {verdict.reason}",
        "",
        *(
            f"![{module.TITLE}]({p.name})" if p.suffix == ".png" else f"Interactive: [{p.name}]({p.name})"
            for p in pictures
        ),
        "",
        markdown_table(table),
        "",
    ]
    write_text(out / f"{name}.md", "\n".join(lines))

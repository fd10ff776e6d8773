"""The shape of an experiment: settings, jobs, work, table, figure, verdict.

Each experiment is a module of this folder that holds

    TITLE, CLAIM                         what it is, and what the study says it shows
    RULE                                 when that counts as seen: written before the experiment is run, and published
    SETTINGS                             a frozen dataclass; `configs/NAME.yaml` gives it at the scales small and study
    jobs(settings, data) -> [Job]        what can be done side by side; each carries its own seed
    work(job) -> [record, …]             in a worker process; records are plain values
    table(records) -> DataFrame          what is published
    figure(table) -> plotly figure
    verdict(records, table) -> Verdict   whether the claim is seen, by that rule
    caption(settings, data) -> [str]     sentences that a reader of the table needs
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.answering.release import FACTS, find_model
from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import write_text
from l2m_core.metrics import Interval, paired_interval
from l2m_core.settings import apply_override, build_settings, read_settings, to_plain
from train.engines import fan_out
from train.study.evaluation.report import markdown_table
from train.study.evaluation.trial_runs import MethodChoice, load_model
from train.study.evaluation.versions import code_version
from train.study.experiments import figures
from train.study.resumable_table import ResumableTable

EXPERIMENTS = (
    "uncertainty",
    "acquisition",
    "planning",
    "context_length",
    "informative",
    "zero_shot",
    "adaptivity",
    "real_missingness",
    "ablations",
    "gradients",
    "runtimes",
    "policy_maps",
)
SCALES = ("small", "study")
SEEN, NOT_SEEN, NOT_TESTABLE = "seen", "not seen", "not testable here"


@dataclass(frozen=True)
class Job:
    """A piece of an experiment; `key` names it within the experiment."""

    key: str
    settings: Any
    part: Any
    data: Path
    methods: tuple[str, ...] = ()
    """The only methods that the piece runs, on the task that `part` names; empty: it may use anything of `settings`."""


@dataclass(frozen=True)
class Verdict:
    """SEEN, NOT_SEEN or NOT_TESTABLE, and the numbers that say so."""

    status: str
    reason: str


def find(name: str) -> ModuleType:
    if name not in EXPERIMENTS:
        raise ConfigError(f"There is no experiment {name!r}. Choose all, or one of: {', '.join(EXPERIMENTS)}.")
    return importlib.import_module(f"train.study.experiments.{name}")


def experiment_settings(name: str, scale: str, overrides: Sequence[str] = ()) -> Any:
    """The settings of one scale; `key=value` overrides replace single ones."""
    scales = read_settings(Path(__file__).parent / "configs" / f"{name}.yaml")
    if scale not in scales:
        raise ConfigError(f"There is no scale {scale!r}; choose one of {', '.join(scales)}.")
    plain = scales[scale]
    for override in overrides:
        apply_override(plain, override)
    return build_settings(find(name).SETTINGS, plain, name)


def version_of(job: Job) -> str:
    """Changes with all that the job's records depend on: settings, models, and the code of methods that learn from the
    task. Another model leaves the records of such methods as they are, and so does another number of tasks."""
    plain = {"settings": to_plain(job.settings), "part": to_plain(job.part)}
    code: list[str] = []
    if job.methods:
        own = {name: given for name, given in _method_settings(job.settings).items() if name in job.methods}
        plain = _without(plain, "families", "methods", "tasks", "method_settings")
        if own:
            plain["method_settings"] = own
        code = [code_version(name) for name in job.methods]
        plain = _without(plain, "device")  # of the fine-tuning, which is a piece of its own
        if not any(MethodChoice(name).pretrained for name in job.methods):
            plain = _without(plain, "model")
    facts = [(find_model(name) / FACTS).read_text() for name in models_of(plain)]
    return hashlib.sha256(json.dumps([plain, facts, code], sort_keys=True, default=str).encode()).hexdigest()[:16]


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
) -> Verdict:
    """Runs what is not done yet, then writes NAME.csv, NAME.md and NAME.html."""
    module, settings = find(name), experiment_settings(name, scale, overrides)
    partial = ResumableTable(folders.partial / f"{name}-{scale}.jsonl", ("job", "version"))
    jobs = module.jobs(settings, folders.data)
    marks = [{"job": job.key, "version": version_of(job)} for job in jobs]
    left = [number for number, mark in enumerate(marks) if not partial.has(mark)]
    gpus = int(getattr(settings, "device", "cpu").startswith("cuda"))
    results = fan_out(module.work, [jobs[number] for number in left], engine=engine, workers=workers, gpus=gpus)
    for done, (index, records) in enumerate(results, 1):
        mark = marks[left[index]]
        partial.append([{**mark, "rows": records}])
        say(f"{name} {done}/{len(left)}: {mark['job']}")
    records = [row for mark in marks for row in partial.records[partial.key(mark)]["rows"]]
    table = module.table(records)
    verdict = module.verdict(records, table)
    captions = [scale_note(scale), *model_notes(settings), *module.caption(settings, folders.data), *failures(records)]
    write(name, scale, module, table, verdict, captions, command, folders.out)
    return verdict


def model_notes(settings: Any) -> list[str]:
    """Which models, by the fingerprints of their weights."""
    return [
        f"Model {Path(n).name}, fingerprint {load_model(n).fingerprint[:12]}." for n in models_of(to_plain(settings))
    ]


def scale_note(scale: str) -> str:
    return {
        "small": "Scale small: fewer and smaller tasks than the study's, for two processor cores.",
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
    verdict: Verdict,
    captions: Sequence[str],
    command: str,
    out: Path,
) -> None:
    """Table and figure say the scale themselves: they travel without their page."""
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
        f"**The study's claim.** {module.CLAIM}",
        "",
        f"**Seen when.** {module.RULE}",
        "",
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


# -- rules that verdicts share ----------------------------------------------------------------------------------------


def finished(records: Sequence[dict]) -> list[dict]:
    """Without those of methods that failed."""
    return [record for record in records if not record.get("error")]


def pairs(records: Sequence[dict], score: str, better: str, worse: str, within: Sequence[str]) -> np.ndarray:
    """(n,) score of `worse` minus that of `better` on the same trial: above zero where `better` is better (lower)."""
    return named_pairs(records, score, better, worse, within).to_numpy()


def named_pairs(records: Sequence[dict], score: str, better: str, worse: str, within: Sequence[str]) -> pd.Series:
    """The same under the trials' names, so that pairs of two kinds can be paired again."""
    table = pd.DataFrame([r for r in finished(records) if r["method"] in (better, worse)])
    if table.empty or table["method"].nunique() < 2:
        return pd.Series(dtype=float)
    wide = table.pivot_table(index=list(within), columns="method", values=score, aggfunc="mean").dropna()
    return wide[worse] - wide[better]


def interval(differences: np.ndarray) -> Interval | None:
    return None if len(differences) < 2 else paired_interval(differences, np.random.default_rng(0))


def judge(differences: np.ndarray, what: str) -> Verdict:
    """Seen when the 95% bootstrap interval of the mean difference lies above zero."""
    found = interval(differences)
    if found is None:
        return Verdict(NOT_TESTABLE, f"{what}: fewer than two pairs.")
    return Verdict(SEEN if found.low > 0 else NOT_SEEN, f"{what}: {found}, {len(differences)} pairs.")


def judge_others(records: Sequence[dict], score: str, what: str) -> Verdict:
    """Whether L2M's score is lower than each other method's on the same tasks; `what` names the other as `{}`."""
    others = [method for method in dict.fromkeys(r["method"] for r in records) if method != "l2m"]
    found = {other: pairs(records, score, "l2m", other, ("family", "task")) for other in others}
    return all_of([judge(values, what.format(figures.named(other))) for other, values in found.items()])


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Seen when each part is; not seen when one is not; else a part could not be tested, and so neither can all."""
    reason = " ".join(f"[{v.status}] {v.reason}" for v in verdicts)
    found = {v.status for v in verdicts}
    return Verdict(NOT_SEEN if NOT_SEEN in found else SEEN if found == {SEEN} else NOT_TESTABLE, reason)

"""`python -m train choices`: short pretrainings that differ in one choice each, judged on the same held-out tasks."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from l2m_core.answering.devices import for_training
from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import load_checkpoint, write_text
from l2m_core.learn.held_out import draw_held_out, evaluate
from l2m_core.learn.loop import LoopConfig
from l2m_core.settings import EARLIER_NAME, build_settings, check_least, replace_setting, to_plain
from train.initial_model import load_initial_model
from train.predictor import PredictorJob
from train.predictor import run as run_predictor
from train.priors import priors_of
from train.study.evaluation.report import markdown_table
from train.study.resumable_table import ResumableTable

KEYS = ("variant", "steps", "seed")
DATA = "data"  # of a row: which tasks judged it
# How steps are made and told, not what they teach.
HOW = (
    "dtype",
    "compile",
    "threads",
    "checkpoint_minutes",
    "evaluate_every",
    "log_every",
    "count_operations",
    "minutes",
)


@dataclass(frozen=True)
class ChoicesJob:
    """The choices that are compared, and the length of each training."""

    folder: str
    """Where the runs and the table's finished rows go."""
    base: dict[str, Any]
    """Settings of a predictor job, without `folder`. Its prior is the one whose held-out tasks judge all variants."""
    variants: dict[str, Any]
    """Name → settings that replace the base's, as `a.b: value`. Each holds all of the variant before it as well, except
    one that names another as `after: NAME`."""
    judged_after: tuple[int, ...] = field(default=(200, 400, 600), metadata={EARLIER_NAME: "marks"})
    """Steps after which each is judged."""
    seeds: tuple[int, ...] = (0,)
    """Each variant is trained once for each."""
    pools: int = 1
    """Batches of held-out tasks of each shape."""
    out: str = "docs/results"
    """Where choices.md and choices.csv are written."""

    def __post_init__(self) -> None:
        for name in ("variants", "judged_after", "seeds"):
            if not getattr(self, name):
                raise ConfigError(f"{name} is empty; give at least one.")
        if min(self.judged_after) < 1:
            raise ConfigError(f"judged_after has {min(self.judged_after)}; give numbers of steps from 1 on.")
        check_least(self, "choices", pools=1)


@dataclass(frozen=True)
class Variant:
    """One row of the table: what replaces the base's settings, all told."""

    name: str
    after: str
    settings: dict[str, Any] = field(default_factory=dict)


def run(job: ChoicesJob) -> None:
    base, variants = _predictor(job, Variant("base", "")), in_order(job.variants)
    table = ResumableTable(Path(job.folder) / "choices.jsonl", KEYS)
    entries = _entries(job, variants)
    left = [entry for entry in entries if not table.has(entry)]
    _refuse_what_cannot_be(job, variants, left)
    held_out = draw_held_out(priors_of(base.prior), base.device, job.pools)
    by_name = {variant.name: variant for variant in variants}
    for entry in left:
        variant = by_name[entry["variant"]]
        judged = _judge(_run_of(job, variant, entry["seed"]), variant.name, entry["steps"], held_out)
        table.append([{**entry, "after": variant.after, **judged}])
        write_table(Path(job.out), [table.records[table.key(each)] for each in entries if table.has(each)])
    print(write_table(Path(job.out), [table.records[table.key(each)] for each in entries]))


def _entries(job: ChoicesJob, variants: list[Variant]) -> list[dict[str, Any]]:
    """What makes each row of the table the one that it is; in order of steps, as a run goes on from the ones before."""
    return [
        {"variant": variant.name, "steps": steps, "seed": seed, DATA: f"{job.pools} pools"}
        for seed in job.seeds
        for variant in variants
        for steps in sorted({*job.judged_after})
    ]


def _refuse_what_cannot_be(job: ChoicesJob, variants: list[Variant], left: list[dict[str, Any]]) -> None:
    """Before the first of them has trained."""
    for seed in job.seeds:
        for variant in variants:
            due = [entry["steps"] for entry in left if (entry["variant"], entry["seed"]) == (variant.name, seed)]
            _refuse_another_run(_run_of(job, variant, seed), variant.name, max(job.judged_after), due)


def in_order(variants: dict[str, Any]) -> list[Variant]:
    """Every variant with all that it holds, in the order of the config."""
    found: dict[str, Variant] = {}
    previous = ""
    folders: dict[str, str] = {}
    for name, given in variants.items():
        if not isinstance(given, dict | None):
            raise ConfigError(f"variants.{name} is {given!r}; give names and values.")
        if Path(folder_name(name)).name != folder_name(name) or folders.setdefault(folder_name(name), name) != name:
            raise ConfigError(f"The variant {name!r} has a name that can be no folder's, or is another's; rename it.")
        settings = dict(given or {})
        after = settings.pop("after", previous)
        if after and after not in found:
            raise ConfigError(f"variants.{name}.after is {after!r}; it must name a variant above it.")
        before = found[after].settings if after else {}
        found[name] = Variant(name, after, {**before, **settings})
        previous = name
    return list(found.values())


def _predictor(job: ChoicesJob, variant: Variant) -> PredictorJob:
    plain = copy.deepcopy(job.base)
    plain["folder"] = job.folder
    for key, value in variant.settings.items():
        replace_setting(plain, key, value)
    built = build_settings(PredictorJob, plain, f"variants.{variant.name}" if variant.settings else "base")
    return replace(built, device=for_training(built.device))


def folder_name(variant: str) -> str:
    return variant.replace(" ", "_")


def _run_of(job: ChoicesJob, variant: Variant, seed: int) -> PredictorJob:
    """The whole training of a variant."""
    folder = Path(job.folder) / f"{folder_name(variant.name)}-{seed}"
    return replace(_predictor(job, variant), folder=str(folder), seed=seed, stop_at=0, held_out_pools=1)


def _has_begun(run: PredictorJob) -> bool:
    return any(Path(run.folder, "checkpoints").glob("step-*"))


def _refuse_another_run(run: PredictorJob, name: str, last: int, due: list[int]) -> None:
    """Refuses steps that the run has not, and a folder that holds another run or one that is beyond the steps due."""
    length = sum(stage.steps for stage in run.stages)
    if length < last:
        raise ConfigError(f"judged_after has {last}, but {name!r} is trained for {length} steps.")
    if not _has_begun(run):
        return
    _, facts = load_checkpoint(Path(run.folder) / "checkpoints")
    kept, own = (to_plain(_what_is_learned(each)) for each in (build_settings(PredictorJob, facts["job"]), run))
    if changed := [setting for setting in own if kept[setting] != own[setting]]:
        raise ConfigError(
            f"{run.folder} holds a run of {name!r} with other settings ({', '.join(changed)}). Name another folder."
        )
    if due and facts["step"] > min(due):
        raise ConfigError(
            f"{run.folder} is trained to step {facts['step']} already, so {name!r} can no longer be judged after "
            f"{min(due)}. Name another folder."
        )


def _what_is_learned(run: PredictorJob) -> PredictorJob:
    """The run without what may change on the way: where and how it is computed, and what is told of it."""
    usual = LoopConfig()
    loop = replace(run.loop, **{name: getattr(usual, name) for name in HOW})
    return replace(run, folder="", stop_at=0, device="cpu", loop=loop)


def _judge(run: PredictorJob, name: str, steps: int, held_out) -> dict[str, Any]:
    """Trains up to `steps` steps, continuing where a shorter run left off; held-out losses under the base rate's."""
    run_predictor(replace(run, stop_at=steps), resume=_has_begun(run))
    _, facts = load_checkpoint(Path(run.folder) / "checkpoints")
    if facts["step"] < steps:  # it was asked to stop; the table holds whole runs only
        raise SystemExit(f"Stopped at step {facts['step']} of {name!r}. The same command goes on from there.")
    losses = evaluate(load_initial_model(run.folder, run.device).eval(), held_out)
    gained = {name: losses[f"{name}_base"] - loss for name, loss in losses.items() if f"{name}_base" in losses}
    return {"tasks": facts["tasks_seen"], "seconds": round(facts["seconds"], 1), **gained}


def write_table(folder: Path, records: list[dict[str, Any]]) -> str:
    """choices.csv and choices.md; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(records)
    shapes = [c for c in frame.columns if c not in (*KEYS, DATA, "after", "tasks", "seconds")]
    frame["mean"] = frame[shapes].mean(axis=1)
    write_text(folder / "choices.csv", frame.to_csv(index=False, float_format="%.6g"))
    means = frame.groupby(["variant", "after", "steps"], sort=False)[["tasks", "seconds", *shapes, "mean"]].mean()
    page = f"{HEAD}\n{markdown_table(means.reset_index())}\n"
    write_text(folder / "choices.md", page)
    return page


HEAD = """# Choices of training, each against the one it comes after

`python -m train choices --config train/configs/choices.yaml`

Nats under the base rate on held-out synthetic tasks (higher is better), by steps, tasks seen and seconds. Short runs:
they order choices at their beginning, not at their end. Seconds are by the clock, other work of the machine included.
"""

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
from l2m_core.settings import EARLIER_NAME, build_settings, replace_setting
from train.initial_model import load_initial_model
from train.predictor import PredictorJob
from train.predictor import run as run_predictor
from train.priors import priors_of
from train.study.evaluation.report import markdown_table
from train.study.resumable_table import ResumableTable

KEYS = ("variant", "steps", "seed")


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


@dataclass(frozen=True)
class Variant:
    """One row of the table: what replaces the base's settings, all told."""

    name: str
    after: str
    settings: dict[str, Any] = field(default_factory=dict)


def run(job: ChoicesJob) -> None:
    base, variants = _predictor(job, Variant("base", "")), in_order(job.variants)
    for variant in variants:  # a setting that is none is refused before the first of them has trained
        _predictor(job, variant)
    held_out = draw_held_out(priors_of(base.prior), base.device, job.pools)
    table = ResumableTable(Path(job.folder) / "choices.jsonl", KEYS)
    for seed in job.seeds:
        for variant in variants:
            for steps in job.judged_after:
                entry = {"variant": variant.name, "steps": steps, "seed": seed}
                if not table.has(entry):
                    table.append([{**entry, "after": variant.after, **_judge(job, variant, steps, seed, held_out)}])
                    write_table(Path(job.out), list(table.records.values()))
    print(write_table(Path(job.out), list(table.records.values())))


def in_order(variants: dict[str, Any]) -> list[Variant]:
    """Every variant with all that it holds, in the order of the config."""
    found: dict[str, Variant] = {}
    previous = ""
    for name, given in variants.items():
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


def _judge(job: ChoicesJob, variant: Variant, steps: int, seed: int, held_out) -> dict[str, Any]:
    """Trains up to `steps` steps, continuing where a shorter run left off; held-out losses under the base rate's."""
    folder = Path(job.folder) / f"{variant.name}-{seed}".replace(" ", "_")
    trained = replace(_predictor(job, variant), folder=str(folder), seed=seed, stop_at=steps, held_out_pools=1)
    has_begun = (folder / "checkpoints").is_dir() and any((folder / "checkpoints").glob("step-*"))
    run_predictor(trained, resume=has_begun)
    _, facts = load_checkpoint(folder / "checkpoints")
    if facts["step"] < steps:  # it was asked to stop; the table holds whole runs only
        raise SystemExit(f"Stopped at step {facts['step']} of {variant.name!r}. The same command goes on from there.")
    losses = evaluate(load_initial_model(str(folder), trained.device).eval(), held_out)
    gained = {name: losses[f"{name}_base"] - loss for name, loss in losses.items() if f"{name}_base" in losses}
    return {"tasks": facts["tasks_seen"], "seconds": round(facts["seconds"], 1), **gained}


def write_table(folder: Path, records: list[dict[str, Any]]) -> str:
    """choices.csv and choices.md; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(records)
    shapes = [c for c in frame.columns if c not in (*KEYS, "after", "tasks", "seconds")]
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

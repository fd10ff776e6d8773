"""`python -m train leg`: one leg of a long pretraining, on a machine that is lent for minutes.

It takes up the state that the leg before left (or begins), tries which arithmetic is fastest here, trains for the minutes
given, and leaves a state of a few small files, the learning curve, and a page that compares the model with the released
one on the same held-out tasks. It needs only what the core needs: torch, numpy, pandas, pyyaml, safetensors, tqdm.

The first leg also fits the schedule to the minutes that all legs together will have: it measures what a step of each
stage takes, and gives every stage its share of the time. Later legs follow the plan that the state carries.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import write_text
from l2m_core.learn.held_out import draw_held_out
from l2m_core.learn.logs import NAME as LOG
from l2m_core.learn.loop import Loop, LoopConfig
from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.model.encoders import build_model
from l2m_core.settings import build_settings, read_settings, to_plain
from train import portable_state
from train.predictor import PredictorJob, predictor_loss
from train.predictor import run as run_predictor
from train.pretraining import prepare
from train.priors import priors_of
from train.study.held_out import page, task_losses

LONGEST_LOG = 200_000  # bytes of the learning curve that come back; every second line goes until it fits
TRIAL_STEPS = 3


@dataclass(frozen=True)
class Arithmetic:
    """How a step is computed."""

    dtype: str
    compile: bool

    def of(self, loop: LoopConfig) -> LoopConfig:
        return replace(loop, dtype=self.dtype, compile=self.compile)


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    job = job_of(given)
    checkpoints = Path(job.folder) / "checkpoints"
    shutil.rmtree(job.folder, ignore_errors=True)
    goes_on = portable_state.has_state(given.state)
    if goes_on:
        step = portable_state.unpack(given.state, checkpoints, asdict(job.model))
        job = with_plan(job, json.loads((given.state / portable_state.STATE).read_text()))
        print(f"goes on from step {step:,} of {sum(stage.steps for stage in job.stages):,}", flush=True)
    arithmetic, seconds = fastest(job)
    job = replace(job, loop=arithmetic.of(job.loop))
    if not goes_on and given.plan_minutes:
        job = replace(job, stages=fitted(job, 60 * given.plan_minutes))
        print("planned steps by stage:", ", ".join(f"{stage.steps:,}" for stage in job.stages), flush=True)
    print(f"arithmetic: {arithmetic.dtype}, compiled: {arithmetic.compile}, {seconds:.3f} s a step", flush=True)
    run_predictor(job, resume=goes_on)
    leave(given, job)
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m train leg", description=__doc__.split("\n")[0])
    parser.add_argument("--config", type=Path, required=True, help="settings of a predictor job")
    parser.add_argument("--state", type=Path, required=True, help="folder of the state to go on from, if it is there")
    parser.add_argument("--out", type=Path, required=True, help="empty folder for the new state, curve and comparison")
    parser.add_argument("--minutes", type=float, default=8.0, help="minutes of training in this leg")
    parser.add_argument(
        "--plan-minutes", type=float, default=0.0, help="first leg: minutes of all legs, to fit the schedule to"
    )
    parser.add_argument("--beside", metavar="MODEL", action="append", help="a model to compare with (general)")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings that replace the file's")
    given = parser.parse_intermixed_args(arguments)
    if given.minutes <= 0:
        parser.error("--minutes must be above 0")
    return given


def job_of(given: argparse.Namespace) -> PredictorJob:
    job = build_settings(PredictorJob, read_settings(given.config, given.overrides))
    if job.init:
        raise ConfigError("A leg begins with fresh weights or goes on from --state; leave out the setting init.")
    job = replace(job, loop=replace(job.loop, minutes=given.minutes))
    if job.device == "auto":
        job = replace(job, device="cuda" if torch.cuda.is_available() else "cpu")
    return job


def with_plan(job: PredictorJob, facts: dict[str, Any]) -> PredictorJob:
    """The job with the steps of its stages as the state planned them."""
    planned = facts["job"]["stages"]
    if len(planned) != len(job.stages):
        raise ConfigError(f"The state has a plan of {len(planned)} stages, the config {len(job.stages)}. Use its own.")
    stages = zip(job.stages, planned, strict=True)
    return replace(job, stages=tuple(replace(stage, steps=int(plan["steps"])) for stage, plan in stages))


def fastest(job: PredictorJob) -> tuple[Arithmetic, float]:
    """Of the ways to compute a step, the fastest on this machine; one that fails here is passed over."""
    found: list[tuple[float, Arithmetic]] = []
    for arithmetic in candidates(job.device):
        try:
            found.append((seconds_a_step(job, arithmetic, job.stages[-1]), arithmetic))
        except Exception as error:  # compilers and kernels fail in many ways; the next candidate is there for that
            print(f"{arithmetic} does not run here: {type(error).__name__}: {str(error)[:200]}", flush=True)
    if not found:
        raise ConfigError(f"No arithmetic runs on the device {job.device!r}; the reasons are above.")
    seconds, best = min(found, key=lambda entry: entry[0])
    return best, seconds


def candidates(device: str) -> list[Arithmetic]:
    plain = [Arithmetic("bfloat16", False), Arithmetic("float32", False)]
    return [Arithmetic("bfloat16", True), plain[0]] if device.startswith("cuda") else plain


def seconds_a_step(job: PredictorJob, arithmetic: Arithmetic, stage: Stage) -> float:
    """Of a short run with fresh weights, after a first step that builds kernels."""
    with tempfile.TemporaryDirectory() as folder:
        trial = replace(job, folder=folder)
        prepare(trial)
        model = build_model(job.model).to(job.device)
        stages = (replace(stage, steps=2 * TRIAL_STEPS),)
        config = replace(arithmetic.of(job.loop), minutes=0.0, evaluate_every=0)
        stream = EpisodeStream(priors_of(job.prior), stages, job.seed, job.device)
        loop = Loop(predictor_loss(model, job.orders), stream.episode, stages, config, None, quiet=True)
        loop.run(TRIAL_STEPS)
        _wait(job.device)
        began = time.monotonic()
        loop.run(2 * TRIAL_STEPS)
        _wait(job.device)
        return (time.monotonic() - began) / TRIAL_STEPS


def fitted(job: PredictorJob, seconds: float) -> tuple[Stage, ...]:
    """The stages with steps scaled alike, so that all of them together take about so many seconds."""
    arithmetic = Arithmetic(job.loop.dtype, job.loop.compile)
    planned = sum(stage.steps * seconds_a_step(job, arithmetic, stage) for stage in job.stages)
    return tuple(replace(stage, steps=max(1, round(stage.steps * seconds / planned))) for stage in job.stages)


def leave(given: argparse.Namespace, job: PredictorJob) -> None:
    """State, learning curve and comparison, in `--out`."""
    given.out.mkdir(parents=True, exist_ok=True)
    portable_state.pack(Path(job.folder) / "checkpoints", given.out / "state")
    log = Path(job.folder) / LOG
    lines = log.read_text().splitlines() if log.is_file() else []
    while sum(map(len, lines)) > LONGEST_LOG:
        lines = [line for number, line in enumerate(lines) if number % 2 or "held_out" in line]
    write_text(given.out / f"curve-{len(list(given.state.parent.glob('curve-*'))) + 1}.jsonl", "\n".join(lines) + "\n")
    held_out = draw_held_out(priors_of(job.prior), job.device, job.held_out_pools)
    comparison = page(task_losses([*(given.beside or ["general"]), job.folder], held_out, job.device))
    write_text(given.out / "held_out.md", comparison + "\n")
    write_text(given.out / "job.json", json.dumps(to_plain(job), indent=1))
    print(comparison)


def _wait(device: str) -> None:
    """Until the GPU has done what it was given; clocks are read only then."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()

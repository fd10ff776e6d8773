"""`python -m train leg`: one leg of a long pretraining, on a machine that is lent for minutes.

It takes up the state that the leg before left (or begins, with fresh weights or those of `init`), tries which arithmetic
is fastest here, trains for the minutes given, and leaves a state of a few small files, the learning curve, and a page that
compares the model with the released one on the same held-out tasks. It needs only what the core needs: torch, numpy, pandas,
pyyaml, safetensors, tqdm.

A job whose `loop.timed` is set is one leg that spends all of its minutes on training, with the arithmetic that its config names.
Of others, the first leg also fits the schedule to the minutes that all legs together will have: it measures what a step of each
stage takes, and gives every stage its share of the time. Later legs follow the plan that the state carries, or fit what is
left of it to the minutes that are left.
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

from l2m_core.answering import devices
from l2m_core.cli import program, purpose
from l2m_core.errors import ConfigError
from l2m_core.learn.checkpoints import write_text
from l2m_core.learn.held_out import draw_held_out
from l2m_core.learn.logs import NAME as LOG
from l2m_core.learn.loop import Loop, LoopConfig
from l2m_core.learn.stages import POOL_STEPS, Stage
from l2m_core.model.encoders import build_model
from l2m_core.paths import folder_to_write
from l2m_core.settings import build_settings, read_settings, to_plain
from train import portable_state
from train.initial_model import load_initial_model
from train.predictor import PredictorJob, predictor_loss
from train.predictor import run as run_predictor
from train.pretraining import held_out_shapes, prepare, stream_of
from train.priors import priors_of
from train.study.held_out import page, task_losses

LONGEST_LOG = 200_000  # bytes of the learning curve that come back; every second line goes until it fits
TRIAL_STEPS, TRIAL_SHAPES = 3, 4
MARK = "leg.txt"  # in a folder that a leg made, and may remove
KEPT = "kept.txt"  # beside it: the newest checkpoint that a state holds as well


@dataclass(frozen=True)
class Arithmetic:
    """How a step is computed."""

    dtype: str
    compile: bool

    def of(self, loop: LoopConfig) -> LoopConfig:
        return replace(loop, dtype=self.dtype, compile=self.compile)


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    for name in given.beside:  # before the minutes are spent, not after
        load_initial_model(name, setting="--beside")
    job = job_of(given)
    checkpoints = Path(job.folder) / "checkpoints"
    make_way(Path(job.folder))
    goes_on = portable_state.has_state(given.state)
    if goes_on:
        step = portable_state.unpack(given.state, checkpoints, asdict(job.model))
        note_kept(Path(job.folder))
        job = with_plan(job, json.loads((given.state / portable_state.STATE).read_text()))
        print(f"goes on from step {step:,} of {sum(stage.steps for stage in job.stages):,}", flush=True)
    if not job.loop.timed:  # whose minutes are too few to try anything, and whose schedule needs no plan
        arithmetic, seconds = fastest(job)
        job = replace(job, loop=arithmetic.of(job.loop))
        if given.plan_minutes:
            job = replace(job, stages=fitted(job, 60 * given.plan_minutes, step if goes_on else 0))
            print("planned steps by stage:", ", ".join(f"{stage.steps:,}" for stage in job.stages), flush=True)
        print(f"arithmetic: {arithmetic.dtype}, compiled: {arithmetic.compile}, {seconds:.3f} s a step", flush=True)
    run_predictor(job, goes_on, f"The next leg goes on from there, with --state {given.out / 'state'}.")
    leave(given, job)
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("train", "leg"), description=purpose(__doc__.split("\n")[0]))
    parser.add_argument("--config", type=Path, required=True, help="settings of a predictor job")
    parser.add_argument("--state", type=Path, required=True, help="folder of the state to go on from, if it is there")
    parser.add_argument(
        "--out", type=folder_to_write, required=True, help="empty folder for the new state, curve and comparison"
    )
    parser.add_argument("--minutes", type=float, default=8.0, help="minutes of training in this leg")
    parser.add_argument(
        "--plan-minutes", type=float, default=0.0, help="minutes of this leg and all later ones, to fit the schedule to"
    )
    parser.add_argument("--beside", metavar="MODEL", action="append", help="a model to compare with (general)")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings that replace the file's")
    given = parser.parse_intermixed_args(arguments)
    if given.minutes <= 0:
        parser.error("--minutes must be above 0")
    given.beside = given.beside or ["general"]
    return given


def make_way(folder: Path) -> None:
    """An empty folder for this leg, which goes on from a state and not from what a leg before left here."""
    if folder.exists() and not (folder / MARK).is_file():
        raise ConfigError(f"{folder} is there and was made by no leg. Move it away, or name another folder (folder=…).")
    if newest_checkpoint(folder) != (kept.read_text() if (kept := folder / KEPT).is_file() else ""):
        raise ConfigError(
            f"{folder} holds checkpoints of a leg that was cut short. `python -m train.portable_state pack STATE {folder}` "
            "makes of them a state to go on from (--state STATE). Then, or to begin anew, remove the folder."
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_text(folder / MARK, "python -m train leg removes this folder when it begins again.\n")


def newest_checkpoint(folder: Path) -> str:
    """Its name; empty where there is none."""
    return max((path.name for path in (folder / "checkpoints").glob("step-*")), default="")


def note_kept(folder: Path) -> None:
    """A state holds what the folder's newest checkpoint does, so the next leg may remove it."""
    write_text(folder / KEPT, newest_checkpoint(folder))


def job_of(given: argparse.Namespace) -> PredictorJob:
    job = build_settings(PredictorJob, read_settings(given.config, given.overrides))
    if job.grow or job.add_vote:
        raise ConfigError("A leg does not grow its model; leave out the settings grow and add_vote.")
    if job.init:
        job = replace(job, model=load_initial_model(job.init).config)  # type: ignore[arg-type]
    job = replace(job, loop=replace(job.loop, minutes=given.minutes))
    return replace(job, device=devices.for_training(job.device))


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


def seconds_a_step(job: PredictorJob, arithmetic: Arithmetic, stage: Stage, shapes: int = 1) -> float:
    """Of a short run with fresh weights over so many of the stage's shapes, after a first step that builds kernels."""
    with tempfile.TemporaryDirectory() as folder:
        trial = replace(job, folder=folder)
        prepare(trial)
        model = build_model(job.model).to(job.device)
        stages = (replace(stage, steps=TRIAL_STEPS + shapes * POOL_STEPS),)
        config = replace(arithmetic.of(job.loop), minutes=0.0, evaluate_every=0)
        stream = stream_of(replace(trial, stages=stages), priors_of(job.prior))
        loop = Loop(predictor_loss(model, job), stream.episode, stages, config, None, quiet=True)
        loop.run(TRIAL_STEPS)
        _wait(job.device)
        began = time.monotonic()
        loop.run(stages[0].steps)
        _wait(job.device)
        return (time.monotonic() - began) / (shapes * POOL_STEPS)


def fitted(job: PredictorJob, seconds: float, done: int = 0) -> tuple[Stage, ...]:
    """The stages with the steps that are left after `done` scaled alike, so that they take about so many seconds."""
    arithmetic = Arithmetic(job.loop.dtype, job.loop.compile)
    before, left = [], []
    for stage in job.stages:
        before.append(min(stage.steps, done))
        left.append(stage.steps - before[-1])
        done -= before[-1]
    planned = sum(
        steps * seconds_a_step(job, arithmetic, stage, TRIAL_SHAPES)
        for steps, stage in zip(left, job.stages, strict=True)
        if steps
    )
    share = seconds / planned if planned else 0.0
    return tuple(
        # A stage that is over keeps its length: where a step stands in the plan follows from it.
        replace(stage, steps=did + (max(1, round(steps * share)) if steps else 0))
        for did, steps, stage in zip(before, left, job.stages, strict=True)
    )


def leave(given: argparse.Namespace, job: PredictorJob) -> None:
    """State, learning curve and comparison, in `--out`."""
    given.out.mkdir(parents=True, exist_ok=True)
    portable_state.pack(Path(job.folder) / "checkpoints", given.out / "state")
    note_kept(Path(job.folder))
    log = Path(job.folder) / LOG
    lines = fitting_lines(log.read_text().splitlines() if log.is_file() else [])
    write_text(given.out / f"curve-{len(list(given.state.parent.glob('curve-*'))) + 1}.jsonl", "\n".join(lines) + "\n")
    shapes = held_out_shapes(job, job.model.encoder)
    held_out = draw_held_out(priors_of(job.prior), job.device, job.held_out_pools, shapes, job.classes_by_frequency)
    comparison = page(task_losses([*given.beside, job.folder], held_out, job.device))
    write_text(given.out / "held_out.md", comparison + "\n")
    write_text(given.out / "job.json", json.dumps(to_plain(job), indent=1))
    print(comparison)


def fitting_lines(lines: list[str]) -> list[str]:
    """Of a learning curve as many as come back; those that hold what was measured go last."""
    while sum(map(len, lines)) > LONGEST_LOG:
        fewer = [line for number, line in enumerate(lines) if number % 2 or "held_out" in line]
        lines = fewer if len(fewer) < len(lines) else lines[1::2]
    return lines


def _wait(device: str) -> None:
    """Until the GPU has done what it was given; clocks are read only then."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()

"""`python -m train benchmark`: what the released model costs to use, beside the figures owed. One run, one machine.

Every timing stands beside something run in the same process, since machines differ: a step beside encoding the cohort
again, training in blocks beside naive training. Peak memory is that of a fresh process. Training counts the seconds of
this process only, on all its threads.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

import l2m_core as l2m
from l2m_core.acquire.rollout import roll_out
from l2m_core.answering import devices
from l2m_core.cli import at_least, program, purpose
from l2m_core.errors import TrainingError
from l2m_core.learn.losses import PredictorLoss
from l2m_core.model.encoders import build_model
from l2m_core.paths import file_to_write
from train.study.evaluation.report import publish
from train.study.experiments import rows_speed

SIZES = ((100, 10), (1000, 20), (2000, 40), (10_000, 20))
STEPS = 60
TASKS, ROWS, ORDERS, TRAINING_STEPS = 4, 256, 4, 3  # of the training that is timed, on 20 features


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("train", "benchmark"), description=purpose(__doc__))
    parser.add_argument("--model", default="general")
    devices.add_option(parser)
    parser.add_argument("--threads", type=at_least(1), default=os.cpu_count() or 1)
    parser.add_argument("--patients", type=at_least(1), default=10_000, help="patients of the bulk roll-out")
    parser.add_argument("--out", type=file_to_write, default=Path("docs/results/benchmark.md"))
    parser.add_argument("--child", nargs=2, type=int, metavar=("ROWS", "FEATURES"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    devices.apply_option(given.device)
    torch.set_num_threads(given.threads)
    if given.child:
        print(json.dumps(condition_once(given.model, *given.child)))
        return 0
    publish(given.out, report(given))
    return 0


def report(given: argparse.Namespace) -> str:
    lines = [
        "# What an answer costs",
        "",
        f"`python -m train benchmark --threads {given.threads} --patients {given.patients}` on {machine(given.threads)}; "
        f"the model answers on {devices.choose()}.",
        "",
        "| what | measured | owed |",
        "| --- | --- | --- |",
        *step_rows(given.model),
        *[conditioning_row(given, rows, features) for rows, features in SIZES],
        *bulk_rows(given.model, given.patients),
        *training_rows(given.model),
    ]
    return "\n".join(lines) + "\n"


def step_rows(model_name: str) -> list[str]:
    """One patient's step on 1,000 × 20: posterior and ranking by the gain head, and with the gains computed that a step-through
    shows; and encoding the cohort again."""
    model = l2m.load(model_name)
    cohort = make_cohort(1000, 20)
    memory = model.condition(cohort)
    generator = np.random.default_rng(0)

    def screen() -> None:
        known = np.where(generator.random((1, 20)) < generator.random(), generator.normal(size=(1, 20)), np.nan)
        memory.answer(known.astype(np.float32))

    def step() -> None:
        values = {name: float(v) for name, v in zip(cohort.names, generator.normal(size=20), strict=True)}
        patient = memory.start(dict(list(values.items())[: int(generator.integers(1, 19))]))
        _ = patient.posterior, patient.ranking, patient.advice

    screened, shown = (np.quantile(timings(work, STEPS), [0.5, 0.95]) for work in (screen, step))
    again = timings(lambda: model.condition(cohort), 5)
    by_head, with_gains = (np.median(again) / step[0] for step in (screened, shown))
    return [
        f"| belief and ranking by the gain head, 1,000 rows × 20 features, p50 / p95 | {_milliseconds(screened)} | p95 < 50 ms |",
        f"| one step with its gains computed, p50 / p95 | {_milliseconds(shown)} | p95 < 80 ms |",
        f"| encoding that cohort again, against a belief and ranking, and against one step with its gains computed | "
        f"{by_head:.0f} and {with_gains:.0f} times | at least 50 times |",
    ]


def _milliseconds(seconds: np.ndarray) -> str:
    return " / ".join(f"{1e3 * value:.1f}" for value in seconds) + " ms"


def conditioning_row(given: argparse.Namespace, rows: int, features: int) -> str:
    command = [sys.executable, "-m", "train", "benchmark", "--model", given.model, "--threads", str(given.threads)]
    done = subprocess.run([*command, "--child", str(rows), str(features)], capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        reason = said[-1] if said else "it was ended from outside, most likely for want of memory"
        raise TrainingError(f"Conditioning {rows:,} × {features} came to no end: {reason.removeprefix('error: ')}")
    found = json.loads(done.stdout.splitlines()[-1])
    owed = "< 3 s, < 2 GB" if (rows, features) == (1000, 20) else "works" if rows == 10_000 else ""
    return (
        f"| conditioning {rows:,} × {features} | {found['seconds']:.2f} s, peak {found['peak_gb']:.2f} GB, "
        f"memory kept {found['kept_mb']:.0f} MB | {owed} |"
    )


def condition_once(model_name: str, rows: int, features: int) -> dict[str, float]:
    model = l2m.load(model_name)
    cohort = make_cohort(rows, features)
    began = time.perf_counter()
    memory = model.condition(cohort)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "peak_gb": peak_kilobytes() / 2**20, "kept_mb": memory.nbytes / 2**20}


def peak_kilobytes() -> int:
    """The most memory that this process has had. On Linux `ru_maxrss` begins at that of whatever started it."""
    status = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE) if status.is_file() else None
    return int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def bulk_rows(model_name: str, patients: int) -> list[str]:
    memory = l2m.load(model_name).condition(make_cohort(1000, 20))
    x = np.random.default_rng(1).normal(size=(patients, 20)).astype(np.float32)
    before = peak_kilobytes()
    began = time.perf_counter()
    roll_out(memory, x, budget=8)
    seconds = time.perf_counter() - began
    grown = (peak_kilobytes() - before) / 2**10
    at_ten_thousand = seconds * 10_000 / patients
    return [
        f"| {patients:,} patients × 8 acquisitions on 1,000 × 20 | {seconds:.0f} s "
        f"({at_ten_thousand:.0f} s for 10,000), memory grew by {grown:.0f} MB | 10,000 in < 300 s, steady memory |"
    ]


def training_rows(model_name: str) -> list[str]:
    """Rows of tasks trained on per second (bf16, forward and backward): the study's model, and the given one's shape."""
    study, episodes = rows_speed.set_up(TASKS, ROWS, 20, TRAINING_STEPS)
    speeds = rows_speed.measure(study, episodes, ORDERS)
    # As code that knows nothing of bf16 would train; here the model and its work are in float32 as a whole.
    plain = rows_speed.measure(*rows_speed.set_up(TASKS, ROWS, 20, TRAINING_STEPS, dtype="float32"), ORDERS)
    asked = ORDERS * episodes[0].a.shape[1] / ROWS  # questions about each row, context rows included
    config = l2m.load(model_name).release.config
    cells = PredictorLoss(build_model(config).to(torch.bfloat16))
    seconds = []
    for episode in episodes:
        began = time.process_time()
        cells(episode)[0].backward()
        cells.zero_grad()
        seconds.append(time.process_time() - began)
    shape = f"{TASKS} tasks of {ROWS} × 20"
    return [
        f"| training, rows encoder at study scale ({shape}, each query known in {ORDERS} ways) | "
        f"{speeds['blocks'] / asked:,.0f} rows/s, {speeds['blocks'] / speeds['naive']:.1f} times naively in bf16 "
        f"(it passes {rows_speed.tokens_saved(episodes[0], ORDERS):.1f} times fewer tokens), "
        f"{speeds['blocks'] / plain['naive']:.1f} times naively in float32 | at least 3 times naively |",
        f"| training, {config.encoder} encoder of the released shape ({shape}) | "
        f"{TASKS * ROWS / np.median(seconds[1:]):,.0f} rows/s | |",
    ]


def make_cohort(rows: int, features: int) -> l2m.Cohort:
    generator = np.random.default_rng(rows + features)
    x = generator.normal(size=(rows, features))
    y = generator.random(rows) < 1 / (1 + np.exp(-2 * x[:, 0] - x[:, 1]))
    x[generator.random(x.shape) < 0.2] = np.nan
    return l2m.Cohort.from_arrays(x, y.astype(int))


def timings(function: Callable[[], object], count: int) -> np.ndarray:
    """Seconds of each call, two warm-ups left out."""
    seconds = []
    for _ in range(count + 2):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return np.array(seconds[2:])


def machine(threads: int) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{threads} CPU threads of {os.cpu_count()}, {memory:.0f} GiB, PyTorch {torch.__version__}"

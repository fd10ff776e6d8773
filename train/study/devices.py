"""`python -m train devices`: whether answers of a GPU are the CPU's, and what they cost on each. One command, one page.

On both devices the same model reads the same cohorts, one of each kind of outcome, and answers the same questions: how long
one step takes, how long it takes to read a cohort and to ask about many patients, what memory that needs, and how far the
answers lie apart. Then the GPU is made to fail in the middle of work, and the CPU has to go on.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

import l2m_core as l2m
from l2m_core.acquire.rollout import roll_out
from l2m_core.answering import devices
from l2m_core.answering.devices import AGREEMENT, CPU, Device
from l2m_core.cli import at_least, program, purpose
from l2m_core.errors import ConfigError, DeviceWarning, RangeWarning
from l2m_core.memory import L2M, CohortMemory
from l2m_core.paths import file_to_write
from train.study.benchmark import machine, make_cohort, peak_kilobytes, timings
from train.study.evaluation.report import publish

STEPS, READINGS = 60, 5
BUDGET = 8
AGREED_ON = 200  # patients who are asked about on both devices
KINDS = ("two classes", "three classes", "continuous")


@dataclass(frozen=True)
class Cost:
    """Of one device, on a cohort of two classes."""

    p50: float
    """Seconds of one patient's step: posterior, ranking and advice."""
    p95: float
    reading: float
    """Seconds, median."""
    patients_a_second: float
    """In a roll-out of BUDGET acquisitions."""
    peak_bytes: int
    """What the process held on the GPU at once, at most; on the CPU its whole memory, torch and the program included."""


@dataclass(frozen=True)
class Agreement:
    """How far two devices lie apart on one cohort."""

    kind: str
    prediction: float
    """The largest difference of a probability; of a continuous outcome, of a mean or spread in the outcome's own spreads."""
    gain: float
    """The largest difference of a gain, in nats."""
    same_first: float
    """Share of patients for whom both suggest the same test."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("train", "devices"), description=purpose(__doc__))
    devices.add_option(parser)
    parser.add_argument("--model", default="general", help="a released model's name or folder")
    parser.add_argument("--rows", type=at_least(10), default=1000, help="of each cohort")
    parser.add_argument("--features", type=at_least(1), default=20, help="of each cohort")
    parser.add_argument("--patients", type=at_least(1), default=10_000, help="patients of the bulk roll-out")
    parser.add_argument("--threads", type=at_least(1), default=os.cpu_count() or 1, help="of the CPU")
    parser.add_argument("--out", type=file_to_write, default=Path("docs/results/devices.md"))
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    chosen = devices.choose(given.device)
    if chosen.is_cpu:
        raise ConfigError(f"There is nothing to compare with the CPU. {chosen.sentence}")
    torch.set_num_threads(given.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        publish(given.out, report(given, chosen))
    return 0


def report(given: argparse.Namespace, chosen: Device) -> str:
    # The CPU first: the memory of the whole process is counted, which never becomes less.
    on_cpu = l2m.load(given.model, CPU)
    costs = {CPU: cost(on_cpu, Device(CPU), given)}
    on_gpu = l2m.load(given.model, chosen.name)
    if on_gpu.release.device.is_cpu:
        raise ConfigError(f"The model does not fit on {chosen}, so there is nothing to compare.")
    costs[str(chosen)] = cost(on_gpu, chosen, given)
    agreements = [agreement(on_gpu, on_cpu, kind, given.rows, given.features) for kind in KINDS]
    fallback = agreement_after_failure(on_gpu, on_cpu, given.rows, given.features)
    command = f"python -m train devices --device {chosen.name} --threads {given.threads} --patients {given.patients}"
    lines = [
        "# Answers of a GPU beside the CPU's",
        "",
        f"`{command}` on {machine(given.threads)}, with {chosen}: model {on_cpu.name} ({on_cpu.fingerprint[:12]}), cohorts of "
        f"{given.rows:,} rows × {given.features} features.",
        "",
        *cost_table(costs, given.patients),
        "",
        *agreement_table([*agreements, fallback]),
        "",
        verdict([*agreements, fallback]),
    ]
    return "\n".join(lines) + "\n"


# -- what it costs ----------------------------------------------------------------------------------------------------


def cost(model: L2M, device: Device, given: argparse.Namespace) -> Cost:
    cohort = cohort_of("two classes", given.rows, given.features)
    settled = (lambda: None) if device.is_cpu else (lambda: devices.gpus.wait(device.number))
    if not device.is_cpu:
        devices.gpus.begin_peak(device.number)
    reading = timings(_settled(lambda: model.condition(cohort), settled), READINGS)
    memory = model.condition(cohort)
    generator = np.random.default_rng(0)

    def step() -> None:
        values = dict(zip(cohort.names, map(float, generator.normal(size=given.features)), strict=True))
        patient = memory.start(dict(list(values.items())[: int(generator.integers(1, given.features))]))
        _ = patient.posterior, patient.ranking, patient.advice

    p50, p95 = np.quantile(timings(_settled(step, settled), STEPS), [0.5, 0.95])
    x = np.random.default_rng(1).normal(size=(given.patients, given.features)).astype(np.float32)
    began = time.perf_counter()
    roll_out(memory, x, budget=min(BUDGET, given.features))
    settled()
    speed = given.patients / (time.perf_counter() - began)
    return Cost(float(p50), float(p95), float(np.median(reading)), speed, _peak_bytes(device))


def _settled(work: Callable[[], object], settled: Callable[[], None]) -> Callable[[], None]:
    def whole() -> None:
        work()
        settled()

    return whole


def _peak_bytes(device: Device) -> int:
    if device.is_cpu:
        return 1024 * peak_kilobytes()
    return devices.gpus.peak_bytes(device.number)


# -- whether it agrees ------------------------------------------------------------------------------------------------


def agreement(one: L2M, other: L2M, kind: str, rows: int, features: int) -> Agreement:
    cohort = cohort_of(kind, rows, features)
    return _compared(kind, one.condition(cohort), other.condition(cohort))


def agreement_after_failure(on_gpu: L2M, on_cpu: L2M, rows: int, features: int) -> Agreement:
    """A cohort is read on the GPU, which then runs out of memory at the first question."""
    cohort = cohort_of("two classes", rows, features)
    release = replace(on_gpu.release, module=_FailsWhenAsked(on_gpu.release.module))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeviceWarning)
        memory = L2M(release).read(cohort)
        found = _compared("two classes, after the GPU ran out of memory", memory, on_cpu.read(cohort))
    if not memory.device.is_cpu:
        raise ConfigError("The GPU was made to fail, and the work did not go on with the CPU.")
    return found


class _FailsWhenAsked(torch.nn.Module):
    """A module that reads, and runs out of memory as soon as it is asked."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module
        self.condition = module.condition

    def query(self, *_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("made to fail")


def _compared(kind: str, one: CohortMemory, other: CohortMemory) -> Agreement:
    x = questions(one.cohort)
    mine, theirs = one.answer(x), other.answer(x)
    is_open = np.isnan(x)
    apart = np.abs(_numbers(mine.prediction, one) - _numbers(theirs.prediction, one)).max()
    gains = np.abs(mine.gain - theirs.gain)[is_open].max()
    first = [np.where(is_open, answer.gain, -np.inf).argmax(1) for answer in (mine, theirs)]
    return Agreement(kind, float(apart), float(gains), float((first[0] == first[1]).mean()))


def _numbers(prediction, memory: CohortMemory) -> np.ndarray:
    if isinstance(prediction, np.ndarray):
        return prediction
    return np.stack([prediction.mean, prediction.std]) / memory.cohort.y.std()


def questions(cohort: l2m.Cohort) -> np.ndarray:
    """(n, d) patients of whom random parts are known, at least one test of each being open."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=(AGREED_ON, len(cohort.names))).astype(np.float32)
    x[generator.random(x.shape) < generator.random((AGREED_ON, 1))] = np.nan
    x[:, -1] = np.nan
    return x


def cohort_of(kind: str, rows: int, features: int) -> l2m.Cohort:
    cohort = make_cohort(rows, features)
    if kind == "two classes":
        return cohort
    generator = np.random.default_rng(3)
    y = 2 * np.nan_to_num(cohort.x[:, 0]) + generator.normal(size=rows)
    outcome = np.digitize(y, [-1.0, 1.0]) if kind == "three classes" else y.astype(np.float32)
    return l2m.Cohort.from_arrays(cohort.x, outcome)


# -- what is said of it -----------------------------------------------------------------------------------------------


def cost_table(costs: dict[str, Cost], patients: int) -> list[str]:
    return [
        f"| device | one step, p50 / p95 | reading the cohort | {patients:,} patients × {BUDGET} acquisitions | peak memory |",
        "| --- | --- | --- | --- | --- |",
        *[
            f"| {name} | {1e3 * found.p50:.1f} / {1e3 * found.p95:.1f} ms | {found.reading:.2f} s | "
            f"{found.patients_a_second:,.0f} patients/s | {found.peak_bytes / 2**30:.2f} GiB |"
            for name, found in costs.items()
        ],
        "",
        "Peak memory of a GPU is what torch held there at once for this process; of the CPU it is that of the whole process, "
        "torch's libraries included.",
    ]


def agreement_table(agreements: Sequence[Agreement]) -> list[str]:
    return [
        "| outcome | predictions apart, at most | gains apart, at most, nats | same first suggestion |",
        "| --- | --- | --- | --- |",
        *[f"| {one.kind} | {one.prediction:.1e} | {one.gain:.1e} | {one.same_first:.1%} |" for one in agreements],
    ]


def verdict(agreements: Sequence[Agreement]) -> str:
    worst = max(max(one.prediction, one.gain) for one in agreements)
    is_met = "met" if worst <= AGREEMENT else "NOT met"
    return f"Owed: predictions and gains within {AGREEMENT:.0e}. Measured: {worst:.1e} at most; {is_met}."

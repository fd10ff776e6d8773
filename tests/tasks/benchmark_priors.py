"""Prints how fast each prior draws: `python -m tests.tasks.benchmark_priors [device]`. A measurement, not a test."""

import sys
import time

import torch

from l2m_core.tasks.registry import build_prior

SHAPES = ((24, 112, 5), (24, 112, 10), (8, 224, 16), (8, 1000, 20))


def benchmark(device: str = "cpu", repeats: int = 3) -> None:
    clock = "second" if device.startswith("cuda") else "second of processor time"
    print(f"tasks per {clock} on {device} ({torch.get_num_threads()} threads)")
    print(f"{'prior':<12}" + "".join(f"{f'{B} × {N} × {d}':>18}" for B, N, d in SHAPES))
    for name in ("gp", "bnn", "bnn_plan", "synthetic"):
        prior = build_prior(name)
        speeds = [_speed(prior, torch.Generator(device).manual_seed(0), shape, repeats) for shape in SHAPES]
        print(f"{name:<12}" + "".join(f"{speed:>18,.0f}" for speed in speeds), flush=True)


def _speed(prior, generator: torch.Generator, shape: tuple[int, int, int], repeats: int) -> float:
    prior.sample(generator, *shape)
    _wait(generator.device)
    start = _clock(generator.device)
    for _ in range(repeats):
        prior.sample(generator, *shape)
    _wait(generator.device)
    return repeats * shape[0] / (_clock(generator.device) - start)


def _clock(device: torch.device) -> float:
    """On the CPU processor time, which other programs on a busy machine do not stretch."""
    return time.perf_counter() if device.type == "cuda" else time.process_time()


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    benchmark(*sys.argv[1:2])

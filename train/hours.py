"""How long a training would take on this computer's processor: its operations against a measured rate of matrix products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from l2m_core.errors import ConfigError
from l2m_core.learn.precision import chosen_dtype, products_a_second
from l2m_core.learn.stages import Stage
from l2m_core.model.interface import ModelConfig
from train.initial_model import load_initial_model

FORWARD_AND_BACKWARD = 3


def for_the_processor(job: Any, confirmed: bool) -> Any:
    """The job itself where it can run; one for a GPU that is not here, for the processor, if that was confirmed."""
    if not str(getattr(job, "device", "cpu")).startswith("cuda") or torch.cuda.is_available():
        return job
    if not hasattr(job, "stages"):
        return job  # it says itself that the GPU is missing
    if not confirmed:
        dtype = chosen_dtype(job.loop.dtype, "cpu", job.loop.threads)
        hours = operations(job) / products_a_second(dtype, job.loop.threads) / 3600
        raise ConfigError(
            f"These settings are for a GPU (device: {job.device}), and there is none. On this processor, with loop.threads "
            f"{job.loop.threads}, the job would take at least about {hours:,.0f} hours. Give --yes to train on it all the "
            "same, or take one of the reduced settings."
        )
    return replace(job, device="cpu")


def operations(job: Any) -> float:
    """Floating-point operations of the whole job, roughly."""
    model: ModelConfig = load_initial_model(job.init).config if getattr(job, "init", "") else job.model  # type: ignore[assignment]
    policy = getattr(job, "policy", None)
    ways = getattr(job, "orders", 1) if policy is None else 1 + policy.samples * policy.picks
    return sum(stage.steps * _of_a_step(model, stage, ways) for stage in job.stages)


def _of_a_step(model: ModelConfig, stage: Stage, ways: int) -> float:
    """Of the stage's largest task: two for each weight and token, and four times the width for each pair that attends."""
    rows, features = max(stage.rows), max(stage.features)
    tasks = stage.tasks_for(rows, features)
    columns = 1 if model.encoder == "rows" else features + 1
    tokens = tasks * rows * columns * (1 + ways if model.encoder == "rows" else 1)
    # Queries of a growing context read half of the rows on average.
    pairs = tokens * rows / 2
    # Of two networks a step takes the one of its tasks' outcome.
    used = replace(model, continuous_apart=False).parameters
    forward = 2 * used * tokens + 4 * model.width * model.layers * pairs
    return FORWARD_AND_BACKWARD * forward

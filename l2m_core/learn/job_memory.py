"""What a training job would need of memory, roughly, and the refusal of one that no machine would hold.

It is worked out from the settings alone, before anything is allocated. It may be off by a factor of two or three; a slip
of the keyboard is off by thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

from l2m_core.errors import ConfigError
from l2m_core.learn.stages import POOL_STEPS, Stage
from l2m_core.model.interface import BYTES, ModelConfig

MOST_GIGABYTES = 256
"""More than the machines have that L2M is trained on: a GPU has up to 141 GB, and a step is to fit one."""
STATE_COPIES = 5  # of each parameter: itself, its gradient, its running average, and two moments of the optimiser
TENSORS_OF_WIDTH, TENSORS_OF_FEEDFORWARD = 12, 3  # kept of each token and layer for the backward pass
TENSORS_OF_SCORES = 2  # of attention, where the plain kernel keeps them: before and after the softmax
COPIES_DRAWN = 4  # of each drawn value: as a hidden cause, as a value, its mask, and its share of a sort


def check_memory(
    stages: Sequence[Stage], model: ModelConfig, device: str = "cpu", ways: int = 1, held_out_pools: int = 0
) -> None:
    """Refuses stages of which a step would take more than MOST_GIGABYTES. ways: in which each query is asked at once."""
    kept = STATE_COPIES * BYTES * model.parameters
    for number, stage in enumerate(stages, start=1):
        for rows, features in ((rows, features) for rows in stage.rows for features in stage.features):
            tasks = stage.tasks_for(rows, features)
            drawn = (POOL_STEPS + held_out_pools) * COPIES_DRAWN * BYTES * tasks * rows * (features + 1)
            gigabytes = (kept + drawn + step_bytes(model, tasks, rows, features, device, ways)) / 1e9
            if gigabytes > MOST_GIGABYTES:
                raise ConfigError(
                    f"A step of stage {number} with {tasks:,} tasks of {rows:,} rows and {features:,} features would "
                    f"take about {gigabytes:,.0f} GB of memory; a job may take {MOST_GIGABYTES} GB. Choose fewer rows, "
                    f"features, tasks (or cells) or held-out pools, or a smaller model."
                )


def step_bytes(model: ModelConfig, tasks: int, rows: int, features: int, device: str = "cpu", ways: int = 1) -> int:
    """Of what a forward pass keeps for the backward pass."""
    is_rows = model.encoder == "rows"
    tokens = tasks * rows * (1 + ways if is_rows else features + 1)
    each = TENSORS_OF_WIDTH * model.width + TENSORS_OF_FEEDFORWARD * model.feedforward
    if device == "cpu":  # the fused kernel of a GPU never holds the scores
        each += TENSORS_OF_SCORES * model.heads * rows
    return BYTES * tokens * model.layers * each

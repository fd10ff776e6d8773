"""`python -m train predictor`: pretrains a predictor, cells or rows, on a prior, in stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import nn

from l2m_core.errors import ConfigError
from l2m_core.learn.held_out import evaluate
from l2m_core.learn.loop import RESUME
from l2m_core.learn.losses import PredictorLoss, RowsPredictorLoss
from l2m_core.learn.precision import DTYPES, chosen_dtype
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.settings import check_least
from train.initial_model import grow_model, load_initial_model
from train.pretraining import DrawnTasks, prepare, pretrain


@dataclass(frozen=True)
class PredictorJob(DrawnTasks):
    """Pretraining of the predictor."""

    model: ModelConfig = field(default_factory=ModelConfig)
    """The shape of fresh weights."""
    init: str = ""
    """Start from this checkpoint or released model (then `model` is not read), instead of from fresh weights."""
    grow: dict[str, Any] = field(default_factory=dict)
    """What the model of `init` gets beyond what it has: `layers`, `vote`, `value_bins`, `continuous_apart` (see
    ModelConfig)."""
    add_vote: bool = False
    """The same as `grow: {vote: true}`."""
    soft_labels: bool = False
    """cells: classes count by the prior's probabilities, not by the class that was drawn; see soft_log_loss."""
    value_weight: float = 0.0
    """cells: how much foreseeing the results that are not yet known counts beside the outcome."""
    crps_weight: float = 0.0
    """cells: how much the CRPS of a continuous outcome counts beside its log loss."""
    earlier: str = ""
    """cells: a released model whose answers are taught of all tasks but those whose best answers are known, so that what it knows
    is not forgotten; see PredictorLoss."""
    orders: int = 4
    """rows: ways in which each query is known, within one pass; see RowsPredictorLoss."""

    def __post_init__(self) -> None:
        check_least(self, "predictor", value_weight=0, crps_weight=0, orders=1)
        super().__post_init__()


def run(job: PredictorJob, resume: bool, how_to_go_on: str = RESUME) -> None:
    prepare(job)
    model = load_initial_model(job.init, job.device) if job.init else build_model(job.model).to(job.device)
    changes = {**({"vote": True} if job.add_vote else {}), **job.grow}
    model = grow_model(model, changes).to(job.device) if changes else model
    pretrain(job, model, predictor_loss(model, job), evaluate, resume, how_to_go_on=how_to_go_on)


def predictor_loss(model: nn.Module, job: PredictorJob) -> nn.Module:
    if model.config.encoder == "rows":  # type: ignore[union-attr]
        if job.crps_weight:
            raise ConfigError("crps_weight is set, but the model is of rows, which has no bins; leave it out.")
        return RowsPredictorLoss(model, job.orders)
    if job.value_weight and not model.config.value_bins:  # type: ignore[union-attr]
        raise ConfigError(
            "value_weight is set, but the model foresees no results; give it model.value_bins, or grow them."
        )
    dtype = DTYPES[chosen_dtype(job.loop.dtype, job.device, job.loop.threads)]
    earlier = load_initial_model(job.earlier, job.device, "earlier").to(dtype) if job.earlier else None
    if earlier is not None and job.value_weight and not earlier.config.value_bins:  # type: ignore[union-attr]
        raise ConfigError(
            f"value_weight is set, but earlier: {job.earlier} foresees no results; set value_weight to 0."
        )
    return PredictorLoss(model, job.soft_labels, job.value_weight, earlier, job.crps_weight)

"""`python -m train predictor`: pretrains a predictor, cells or rows, on a prior, in stages."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn

from l2m_core.learn.held_out import evaluate
from l2m_core.learn.losses import PredictorLoss, RowsPredictorLoss
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from train.initial_model import add_vote_head, load_initial_model
from train.pretraining import DrawnTasks, prepare, pretrain


@dataclass(frozen=True)
class PredictorJob(DrawnTasks):
    """Pretraining of the predictor."""

    model: ModelConfig = field(default_factory=ModelConfig)
    """The shape of fresh weights."""
    init: str = ""
    """Start from this checkpoint or released model (then `model` is not read), instead of from fresh weights."""
    add_vote: bool = False
    """Give the model of `init` a vote; see ModelConfig.vote."""
    orders: int = 4
    """rows: ways in which each query is known, within one pass; see RowsPredictorLoss."""


def run(job: PredictorJob, resume: bool) -> None:
    prepare(job)
    model = load_initial_model(job.init, job.device) if job.init else build_model(job.model).to(job.device)
    model = add_vote_head(model).to(job.device) if job.add_vote else model
    pretrain(job, model, predictor_loss(model, job.orders), evaluate, resume)


def predictor_loss(model: nn.Module, orders: int = 4) -> nn.Module:
    is_rows = model.config.encoder == "rows"  # type: ignore[union-attr]
    return RowsPredictorLoss(model, orders) if is_rows else PredictorLoss(model)

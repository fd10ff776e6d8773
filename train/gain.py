"""`python -m train gain`: teaches the gain head on a trained predictor, which stays as it is."""

from __future__ import annotations

from dataclasses import dataclass

from l2m_core.learn.held_out import evaluate_loss
from l2m_core.learn.losses import GainLoss
from l2m_core.settings import check_least
from train.initial_model import freeze_all_but, load_initial_model
from train.pretraining import DrawnTasks, prepare, pretrain


@dataclass(frozen=True, kw_only=True)
class GainJob(DrawnTasks):
    """Training of the gain head."""

    init: str
    """The predictor: a job's folder, a checkpoint, or a released model (name or folder)."""
    target: str = "expected"
    """"information", "expected", "realised" or "mixed"; see GainLoss."""
    reveals: int = 2
    """Unknown features measured in turn for each query."""
    policy: bool = False
    """Teach the policy head as well, from the same measurements, by the exact objective."""
    held_out_pools: int = 1

    def __post_init__(self) -> None:
        check_least(self, "gain", reveals=1)
        super().__post_init__()


def run(job: GainJob, resume: bool) -> None:
    prepare(job)
    model = load_initial_model(job.init, job.device)
    freeze_all_but(model, *(("gain", "policy") if job.policy else ("gain",)))
    loss = GainLoss(model, job.target, job.reveals, job.policy)
    pretrain(job, model, loss, lambda _, held_out: evaluate_loss(loss, held_out), resume)

"""`python -m train policy`: trains the policy head; the trunk is frozen, or trained at a lower rate."""

from __future__ import annotations

from dataclasses import dataclass, field

from l2m_core.learn.held_out import evaluate_loss
from l2m_core.learn.policy import PolicyConfig, PolicyLoss
from l2m_core.model.by_outcome import part_of
from l2m_core.settings import check_least
from train.initial_model import HEADS, forget_policy, freeze, freeze_all_but, load_initial_model
from train.pretraining import DrawnTasks, prepare, pretrain


@dataclass(frozen=True, kw_only=True)
class PolicyJob(DrawnTasks):
    """Training of the policy head."""

    init: str
    """The predictor: a job's folder, a checkpoint, or a released model (name or folder)."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    """The objective, and how it is estimated."""
    fresh_head: bool = False
    """Whether the policy head begins with fresh weights, whatever `init` taught it; so that objectives can be compared."""
    backbone: float = 0.0
    """Learning rate of everything but the heads, as a share of the policy's; 0: frozen."""
    held_out_pools: int = 1

    def __post_init__(self) -> None:
        check_least(self, "policy", backbone=0)
        super().__post_init__()


def run(job: PolicyJob, resume: bool) -> None:
    prepare(job)
    model = load_initial_model(job.init, job.device)
    if job.fresh_head:
        forget_policy(model)
    if job.backbone:
        freeze(model, "gain")
    else:
        freeze_all_but(model, "policy")
    loss = PolicyLoss(model, job.policy, keep_predicting=job.backbone > 0)

    def rate_of(name: str) -> float:
        return 1.0 if part_of(name) in HEADS else job.backbone

    pretrain(job, model, loss, lambda _, held_out: evaluate_loss(loss, held_out), resume, rate_of)

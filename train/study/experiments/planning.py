"""Planning: a policy taught greedily against one that looks a step ahead, with the same frozen predictor."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from l2m_core.learn.loop import LoopConfig
from l2m_core.learn.policy import PolicyConfig
from l2m_core.learn.stages import Stage
from l2m_core.methods.l2m import L2MMethod
from train.initial_model import load_initial_model
from train.policy import PolicyJob
from train.policy import run as train_policy
from train.priors import PriorChoice
from train.study.evaluation.trial_runs import load_model, roll_out
from train.study.experiments.comparison import by_step, log_loss_by_step, scores_of
from train.study.experiments.experiment import Job, Verdict, all_of, judge, pairs, version_of
from train.study.experiments.families import Family, draw
from train.study.experiments.models import check_device, with_module

TITLE = "Planning: greedy against one-step lookahead"
CLAIM = (
    "Where features tell only together (BNN-Plan), a policy taught with one-step lookahead acquires better than a "
    "greedy one with the same predictor; where they do not (BNN), it costs nothing."
)
RULE = (
    "Mean log loss over the steps, paired by task: in families with 'plan' in their name that of lookahead is lower "
    "than that of greedy, in the others not higher by a hundredth of a nat or more, each with its 95% interval."
)
WAYS = ("greedy", "lookahead")


@dataclass(frozen=True)
class PlanningSettings:
    families: tuple[Family, ...]
    """Of the source "prior": the policies are taught on each one's own prior."""
    model: str = "general"
    folder: str = "runs/reproduce/planning"
    """Where the policies' checkpoints are kept."""
    policy: PolicyConfig = field(default_factory=lambda: PolicyConfig("greedy", temperature=0.5, samples=4))
    """Shared by both ways, which differ in the objective alone."""
    stages: tuple[Stage, ...] = (Stage(steps=200),)
    loop: LoopConfig = field(default_factory=LoopConfig)
    device: str = "cpu"
    """Where the policies are taught; "cuda" with a GPU. Questions are asked on the CPU."""
    seed: int = 0


SETTINGS = PlanningSettings


def jobs(settings: PlanningSettings, data: Path) -> list[Job]:
    """One for each family and way: teach the policy, then ask it on the family's tasks."""
    return [Job(f"{f.name}/{way}", settings, (f, way), data) for f in settings.families for way in WAYS]


def work(job: Job) -> list[dict]:
    family, way = job.part
    settings = job.settings
    check_device(settings.device)
    name = family.model or settings.model
    policy_folder = Path(settings.folder) / f"{family.name}-{way}-{version_of(job)}"
    objective = PolicyConfig(
        way,
        settings.policy.estimator,
        settings.policy.temperature,
        ahead=1,
        samples=settings.policy.samples,
        steps=settings.policy.steps,
    )
    job_settings = PolicyJob(
        folder=str(policy_folder),
        init=name,
        stages=settings.stages,
        prior=PriorChoice(family.prior, dict(family.settings)),
        policy=objective,
        loop=settings.loop,
        held_out=("own",),
        device=settings.device,
        seed=settings.seed,
    )
    with contextlib.redirect_stdout(io.StringIO()):
        train_policy(job_settings, resume=(policy_folder / "checkpoints").is_dir())
    module = load_initial_model(str(policy_folder))
    model = with_module(load_model(name), module, way, policy="learned")
    records = []
    for index in range(family.tasks):
        trial = draw(family, index, job.data)
        method = L2MMethod(seed=index, model=model).fit(trial.context)
        rollout = roll_out(method, trial, family.budget)
        facts = {"family": family.name, "task": index, "variant": "", "method": way}
        records.append({**facts, **scores_of(rollout, trial)})
    return records


def caption(settings: PlanningSettings, data: Path) -> list[str]:
    steps = sum(stage.steps for stage in settings.stages)
    return [
        f"Backbone: {settings.model}, frozen. Both policies: {steps} training steps, temperature "
        f"{settings.policy.temperature:g}, {settings.policy.samples} sampled paths; the same acquisition budget."
    ]


def table(records: list[dict]) -> pd.DataFrame:
    return by_step(records, ["log_loss_by_budget", "auroc_by_budget", "recall"])


figure = log_loss_by_step


def verdict(records: list[dict], table: pd.DataFrame) -> Verdict:
    parts = []
    for family in dict.fromkeys(r["family"] for r in records):
        own = [r for r in records if r["family"] == family]
        gained = pairs(own, "log_loss", "lookahead", "greedy", ("family", "task"))
        if "plan" in family:
            parts.append(judge(gained, f"{family}: lookahead below greedy, nats"))
        else:
            # "Costs nothing" is read as: not worse by more than a hundredth of a nat.
            parts.append(judge(gained + 0.01, f"{family}: lookahead below greedy + 0.01, nats"))
    return all_of(parts)

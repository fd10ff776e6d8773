"""Planning: a policy taught greedily against one that looks a step ahead, with the same frozen predictor."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from l2m_core.errors import ConfigError
from l2m_core.learn.loop import LoopConfig
from l2m_core.learn.policy import PolicyConfig
from l2m_core.learn.stages import Stage
from l2m_core.memory import L2M
from l2m_core.methods.l2m import L2MMethod
from train.initial_model import load_initial_model
from train.policy import PolicyJob
from train.policy import run as train_policy
from train.priors import PriorChoice
from train.study.evaluation.trial_runs import load_model, roll_out
from train.study.experiments.comparison import by_step, log_loss_by_step, scores_of
from train.study.experiments.experiment import Job, version_of
from train.study.experiments.families import Family, draw
from train.study.experiments.inference import NONE_STATED
from train.study.experiments.models import training_device, with_module
from train.study.experiments.verdicts import ClaimVerdict, all_of, judge, pairs

TITLE = "Planning: greedy against one-step lookahead"
CLAIM = (
    '"our lookahead variant meta-learns policies that can match or potentially improve over greedy acquisition under a diverse '
    'fully-synthetic task priors"; of its figure: "The lookahead variant outperforms greedy in both settings, with the largest '
    'gains emerging at later acquisition steps."'
)
RULE = (
    "Mean log loss over the steps, paired by task. To match: in every family lookahead is not above greedy by MARGIN = 0.005 "
    "nats, the interval being below that. To improve, which is published beside it and decides nothing: in families with 'plan' "
    "in their name the interval of the gain lies above zero."
)
EFFECT = f"{NONE_STATED} What there is to gain by two tests is the [headroom](headroom.md), which is measured first."
GATED = "greedy"
MARGIN = 0.005
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
    taught: dict[str, dict[str, str]] = field(default_factory=dict)
    """By way, as {greedy: {model: NAME}, …}: released models whose policies were taught already, with the same predictor;
    empty: policies are taught here."""
    device: str = "cpu"
    """Where the policies are taught; "cuda" or "auto" with a GPU. Questions are asked on the CPU."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.taught and set(self.taught) != set(WAYS):
            raise ConfigError(f"taught names {', '.join(sorted(self.taught))}; it must name {' and '.join(WAYS)}.")


SETTINGS = PlanningSettings


def jobs(settings: PlanningSettings, data: Path) -> list[Job]:
    """One for each family and way: teach the policy, then ask it on the family's tasks."""
    return [Job(f"{f.name}/{way}", settings, (f, way), data) for f in settings.families for way in WAYS]


def work(job: Job) -> list[dict]:
    family, way = job.part
    model = load_model(job.settings.taught[way]["model"]) if job.settings.taught else teach(job)
    records = []
    for index in range(family.tasks):
        trial = draw(family, index, job.data)
        method = L2MMethod(seed=index, model=model).fit(trial.context)
        rollout = roll_out(method, trial, family.budget)
        facts = {"family": family.name, "task": index, "variant": "", "method": way}
        records.append({**facts, **scores_of(rollout, trial)})
    return records


def teach(job: Job) -> L2M:
    """The model with a policy of the job's way, taught on its family's prior; or gone on with, where that was begun."""
    family, way = job.part
    settings = job.settings
    device = training_device(settings.device)
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
        classes_by_frequency=load_model(name).release.inference.by_frequency,
        policy=objective,
        loop=settings.loop,
        held_out=("own",),
        device=device,
        seed=settings.seed,
    )
    with contextlib.redirect_stdout(io.StringIO()):
        train_policy(job_settings, resume=(policy_folder / "checkpoints").is_dir())
    module = load_initial_model(str(policy_folder))
    return with_module(load_model(name), module, way, policy="learned")


def caption(settings: PlanningSettings, data: Path) -> list[str]:
    if settings.taught:
        return [
            "Policies taught beforehand with one frozen predictor (the models' cards); the same acquisition budget."
        ]
    steps = sum(stage.steps for stage in settings.stages)
    return [
        f"Backbone: {settings.model}, frozen. Both policies: {steps} training steps, temperature "
        f"{settings.policy.temperature:g}, {settings.policy.samples} sampled paths; the same acquisition budget."
    ]


def table(records: list[dict]) -> pd.DataFrame:
    return by_step(records, ["log_loss_by_budget", "auroc_by_budget", "recall"])


figure = log_loss_by_step


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    parts: list[ClaimVerdict] = []
    improves: list[ClaimVerdict] = []
    for family in dict.fromkeys(r["family"] for r in records):
        own = [r for r in records if r["family"] == family]
        gained = pairs(own, "log_loss", "lookahead", "greedy", ("family", "task"))
        parts.append(judge(gained + MARGIN, f"{family}: lookahead below greedy + {MARGIN:g}, nats"))
        if "plan" in family:
            improves.append(judge(gained, f"{family}: lookahead below greedy, nats"))
    matches = all_of(parts)
    return replace(
        matches, reason=f"To match: {matches.reason} To improve: {all_of(improves).reason or 'no such family.'}"
    )

"""Gradient estimators of the policy: against a REINFORCE reference, and from records with holes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from l2m_core.learn.policy import PolicyConfig, PolicyLoss
from l2m_core.learn.stages import Episode, Stage, draw_known
from l2m_core.methods import make_method
from l2m_core.methods.ipw import LogisticPropensities, offline_ipw, semi_offline_ipw
from l2m_core.methods.networks import Network
from l2m_core.methods.trajectories import gradient, method_loss, reinforce
from train.initial_model import freeze_all_but
from train.study.evaluation.cells import task_trial
from train.study.experiments import figures
from train.study.experiments.comparison import summarise_groups
from train.study.experiments.datasets import find_cohort
from train.study.experiments.experiment import NOT_TESTABLE, Job, Verdict, all_of, judge
from train.study.experiments.families import Family, prior_of, stand_ins
from train.study.experiments.models import load_own_copy

TITLE = "Gradient estimators"
CLAIM = (
    "The straight-through Gumbel-softmax gradient is closer to a long REINFORCE reference than REINFORCE itself at "
    "equal samples; and with holes in the record, semi-offline reweighting is nearer to the truth than offline "
    "reweighting."
)

RULE = (
    "At the fewest samples and the temperature `judged`, the cosine of the Gumbel-softmax gradient to the reference lies "
    "above REINFORCE's; and the relative bias of semi-offline reweighting below that of offline; each paired by task "
    "with its 95% interval above zero."
)


@dataclass(frozen=True)
class GradientsSettings:
    families: tuple[Family, ...]
    model: str = "general"
    samples: tuple[int, ...] = (1, 4, 16, 64)
    """Sampled paths of each query in one estimate."""
    temperatures: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0)
    judged: float = 0.5
    """The temperature that the verdict is about, said beforehand: the best of several would be chosen by its luck."""
    reference: int = 1000
    """Trajectories of each query in the reference."""
    repeats: int = 10
    """Estimates of each kind."""
    queries: int = 16
    """Rows whose acquisition the gradient is about."""
    objective: str = "lookahead"
    steps: int = 3
    """Acquisitions of a trajectory in the table of reweighting."""
    rows: int = 400
    """Rows of a record in the table of reweighting; as many of a real table as it has for two records."""
    estimates: int = 30
    """Estimates of each kind in that table, of which the mean is compared: few would show their spread, not their bias."""
    holes: float = 1.0
    """Share of the largest missingness in those records."""


SETTINGS = GradientsSettings


def jobs(settings: GradientsSettings, data: Path) -> list[Job]:
    most = max(family.tasks for family in settings.families)
    return [
        Job(f"{f.name}/{i}/{part}", settings, (f, i, part), data)
        for i in range(most)
        for f in settings.families
        if i < f.tasks
        for part in ("samples", "holes")
    ]


def work(job: Job) -> list[dict]:
    family, index, part = job.part
    generator = torch.Generator().manual_seed(zlib.crc32(family.name.encode()) + 1_000_003 * index)
    found = {"samples": by_samples, "holes": with_holes}[part](job.settings, family, job.data, generator)
    return [{"family": family.name, "task": index, "part": part, **record} for record in found]


# -- the number of samples and the temperature ------------------------------------------------------------------------


def by_samples(settings: GradientsSettings, family: Family, data: Path, generator: torch.Generator) -> list[dict]:
    """Distance and angle of single estimates to the mean of many."""
    prior, features, _ = prior_of(family, data)
    batch = prior.sample(generator, 1, family.context + settings.queries, features)
    a = draw_known(generator, batch, family.context, Stage(steps=1, known=(0.0, 0.5)))
    episode = Episode(batch, family.context, a)
    module = load_own_copy(family.model or settings.model).release.module
    freeze_all_but(module, "policy")
    per_call = max(settings.samples)
    calls = -(-settings.reference // per_call)
    long = [_estimate(settings, module, episode, "reinforce", 1.0, per_call, -i - 1) for i in range(max(2, calls))]
    reference = _mean(long)
    agreement = cosine(_mean(long[::2]), _mean(long[1::2]))
    kinds = [("reinforce", 1.0), *(("gumbel", t) for t in settings.temperatures)]
    records = []
    for estimator, temperature in kinds:
        for samples in settings.samples:
            found = [
                _estimate(settings, module, episode, estimator, temperature, samples, i)
                for i in range(settings.repeats)
            ]
            records.append(
                {
                    "estimator": estimator,
                    "temperature": temperature if estimator == "gumbel" else None,
                    "judged": settings.judged,
                    "samples": samples,
                    "l2_error": float(np.mean([(g - reference).norm() for g in found])),
                    "relative_error": float(np.mean([(g - reference).norm() / reference.norm() for g in found])),
                    "cosine": float(np.mean([cosine(g, reference) for g in found])),
                    "reference_agreement": agreement,
                }
            )
    return records


def _estimate(
    settings, module: nn.Module, episode: Episode, estimator: str, temperature: float, samples: int, seed: int
) -> Tensor:
    """The gradient of one draw, as one vector."""
    config = PolicyConfig(settings.objective, estimator, temperature, samples=samples)
    parameters = [p for p in module.parameters() if p.requires_grad]
    loss, _ = PolicyLoss(module, config)(replace(episode, seed=seed % 2**31))
    parts = torch.autograd.grad(loss, parameters, allow_unused=True)
    return torch.cat(
        [torch.zeros_like(p).flatten() if g is None else g.flatten() for p, g in zip(parameters, parts, strict=True)]
    )


# -- records with holes -----------------------------------------------------------------------------------------------


def with_holes(settings: GradientsSettings, family: Family, data: Path, generator: torch.Generator) -> list[dict]:
    """A small network's policy, its gradient from complete rows, and what reweighting makes of rows with holes."""
    scaled = family.with_missingness_scale(settings.holes)
    prior, features, _ = prior_of(scaled, data)
    rows = settings.rows
    if family.source == "semi_synthetic":
        rows = min(rows, len(find_cohort(family.data, data).load()) // 2)
    batch = prior.sample(generator, 1, 2 * rows, features)
    learning = task_trial(batch, 0, rows, rows, complete=True)
    record = task_trial(batch, 0, rows, rows)
    acquirable = torch.from_numpy(learning.context.acquirable.copy())
    steps = min(settings.steps, int(acquirable.sum()))
    loss = method_loss(make_method("logistic", seed=0).fit(learning.context))
    network = Network(2 * features, features, generator, hidden=16)

    def policy(x: Tensor, a: Tensor) -> Tensor:
        return network(torch.cat([x, a.float()], dim=1))

    x, y = torch.from_numpy(learning.x.copy()), torch.from_numpy(learning.y.copy())
    holed = torch.from_numpy(
        np.where(np.isnan(record.x) & record.context.acquirable, np.nan, learning.x).astype(np.float32)
    )
    propensity = LogisticPropensities(seed=0, most_known=steps).fit(record.context)
    parameters = list(network.parameters())
    # Baseline values that the table lacks cannot be reweighted away; they count as known zeros for all estimators.
    x, holed = (torch.where(torch.isnan(v) & ~acquirable, torch.zeros_like(v), v) for v in (x, holed))
    repeats = max(1, settings.reference // 10)
    reference = gradient(parameters, reinforce(policy, loss, x, y, acquirable, steps, generator, repeats))
    records = []
    for name, estimate in (("offline", offline_ipw), ("semi-offline", semi_offline_ipw)):
        found = [
            gradient(parameters, estimate(policy, loss, propensity, holed, y, acquirable, steps, generator))
            for _ in range(settings.estimates)
        ]
        mean = _mean(found)
        records.append(
            {
                "estimator": name,
                "temperature": None,
                "samples": settings.estimates,
                "l2_error": float((mean - reference).norm()),
                "relative_error": float((mean - reference).norm() / reference.norm()),
                "cosine": cosine(mean, reference),
            }
        )
    return records


def _mean(vectors: list[Tensor]) -> Tensor:
    return torch.stack(vectors).mean(0)


def cosine(a: Tensor, b: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


# -- what is published ------------------------------------------------------------------------------------------------


def caption(settings: GradientsSettings, data: Path) -> list[str]:
    return [
        f"Gradients are of its policy head, objective {settings.objective}. Reference: at least "
        f"{settings.reference} REINFORCE trajectories of each query. `samples`: l2 error, also as a share of the "
        f"reference's norm, and cosine of single estimates, mean of {settings.repeats}; `reference_agreement` is the "
        f"cosine between two halves of the reference, which is itself noisy where that is low. `holes`: norm of the bias, "
        f"relative bias and cosine of the mean of {settings.estimates} estimates from one record of at most "
        f"{settings.rows} rows, for a small network's policy over {settings.steps} acquisitions, propensities by logistic "
        f"regression; how that one record fell is in it too.",
        *stand_ins(settings.families, data),
    ]


def table(records: list[dict]) -> pd.DataFrame:
    frame = pd.DataFrame(records)
    frame["temperature"] = frame["temperature"].map(lambda t: "" if t is None or t != t else f"{t:g}")
    keys = ["family", "part", "estimator", "temperature", "samples"]
    cosines = summarise_groups(frame, keys, "cosine")
    scores = [name for name in ("l2_error", "relative_error", "reference_agreement") if name in frame]
    rest = frame.groupby(keys, sort=False)[scores].mean().reset_index()
    return cosines.merge(rest, on=keys)


def figure(table: pd.DataFrame):
    shown = table[table["part"] == "samples"].copy()
    tempered = shown["estimator"].str.capitalize() + ", τ = " + shown["temperature"].astype(str)
    shown["estimator"] = shown["estimator"].where(shown["temperature"] == "", tempered)
    return figures.lines(shown, "samples", "cosine", "estimator", "family", "samples", "cosine to the reference")


def verdict(records: list[dict], table: pd.DataFrame) -> Verdict:
    frame = pd.DataFrame(records)
    sampled = frame[frame["part"] == "samples"]
    fewest = sampled[sampled["samples"] == sampled["samples"].min()]
    judged = fewest[
        (fewest["estimator"] == "gumbel") & np.isclose(fewest["temperature"].astype(float), fewest["judged"])
    ]
    gumbel = judged.set_index(["family", "task"])["cosine"]
    plain = fewest[fewest["estimator"] == "reinforce"].set_index(["family", "task"])["cosine"]
    holes = frame[frame["part"] == "holes"].pivot_table(
        index=["family", "task"], columns="estimator", values="relative_error"
    )
    if gumbel.empty or holes.empty:
        return Verdict(NOT_TESTABLE, "A part has not been run.")
    samples = int(sampled["samples"].min())
    return all_of(
        [
            judge(
                (gumbel - plain).to_numpy(),
                f"Cosine of Gumbel (temperature {judged['temperature'].iloc[0]:g}) beyond REINFORCE's at {samples} samples",
            ),
            judge(
                (holes["offline"] - holes["semi-offline"]).to_numpy(),
                "Relative bias of offline beyond semi-offline reweighting",
            ),
        ]
    )

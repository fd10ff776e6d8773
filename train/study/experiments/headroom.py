"""What looking two tests ahead can gain at all: a greedy oracle against one that plans for two tests, on the truth itself."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from l2m_core.errors import ConfigError
from l2m_core.metrics import entropies, paired_interval
from train.study.experiments import figures
from train.study.experiments.experiment import Job
from train.study.experiments.families import Family, prior_of
from train.study.experiments.inference import SMALLEST, units_needed
from train.study.experiments.verdicts import NO_CLAIM, ClaimVerdict

TITLE = "Planning's headroom: what looking two tests ahead can gain"
CLAIM = ""
RULE = (
    "No verdict: it is what two planned tests could gain at most, results being read in parts, and is published before any "
    "policy is taught. A family's headroom is the mean over tasks of the gain, with its 95% t interval."
)
EFFECT = f"The smallest difference worth seeing is {SMALLEST:g} nats, as for planning itself."
GATED = ""
PUBLISHED = 0.95
"""The level of the intervals: nothing is decided by them."""


@dataclass(frozen=True)
class HeadroomSettings:
    families: tuple[Family, ...]
    """Of the source "prior", with classes as outcome."""
    rows: int = 60_000
    """Drawn of each task; the prior says what is true of each."""
    bins: int = 8
    """Parts of equal share in which a result is read."""


SETTINGS = HeadroomSettings


def jobs(settings: HeadroomSettings, data: Path) -> list[Job]:
    return [Job(f"{f.name}/{i}", settings, (f, i), data) for f in settings.families for i in range(f.tasks)]


def work(job: Job) -> list[dict]:
    family, index = job.part
    if family.source != "prior":
        raise ConfigError(f"Family {family.name!r} is of the source {family.source!r}; only a prior knows the truth.")
    prior, features, _ = prior_of(family, job.data)
    generator = torch.Generator().manual_seed(zlib.crc32(family.name.encode()) + 1_000_003 * index)
    batch = prior.sample(generator, 1, job.settings.rows, features)
    if batch.truth is None or batch.truth.probabilities is None:
        raise ConfigError(f"The prior {family.prior!r} does not say how likely each class is; headroom needs that.")
    found = headroom(batch.x[0].numpy(), batch.truth.probabilities[0].numpy(), job.settings.bins)
    return [{"family": family.name, "task": index, "method": "oracle", **found}]


def headroom(x: np.ndarray, probabilities: np.ndarray, bins: int) -> dict[str, float]:
    """Nats that two tests take from the expected log loss, x: (N, d), probabilities: (N, K), the true p(y | x) of each row.

    Both oracles know p(y | results) for any two tests, as the mean of the true probabilities over the rows with these
    results, of whose features nothing else is known. The greedy one asks first for the test that leaves the least by itself;
    the other for the one that leaves the least together with the best second test for each result. The second test is then
    the best for the result, for both. The choices are made on one half of the rows and judged on the other, and the other
    way round: judged on the same rows, the best of many would always be ahead.
    """
    codes = in_bins(x, bins)
    left = [left_after_two(codes[half::2], probabilities[half::2], bins) for half in (0, 1)]
    greedy = float(np.mean([judged(a, b, a[0].argmin()) for a, b in (left, left[::-1])]))
    ahead = float(np.mean([judged(a, b, a[1].min(2).sum(1).argmin()) for a, b in (left, left[::-1])]))
    before = float(entropies(probabilities.mean(0)[None])[0])
    return {"gain": greedy - ahead, "told_by_greedy": before - greedy, "told_by_planning": before - ahead}


def in_bins(x: np.ndarray, bins: int) -> np.ndarray:
    """(N, d) int: which of `bins` parts of equal share each value is in."""
    return (x.argsort(0, kind="stable").argsort(0, kind="stable") * bins) // len(x)


def left_after_two(codes: np.ndarray, probabilities: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Entropy of the outcome that is left, in nats: (d,) after each test alone; (d, bins, d) after a first test j with result v
    and a second test i, times the chance of v, infinite where i is j."""
    N, d = codes.shape
    after = np.full((d, bins, d), np.inf)
    alone = np.zeros(d)
    for j in range(d):
        alone[j] = _left(codes[:, j], probabilities, bins).sum() / N
        for i in range(j):
            both = _left(codes[:, j] * bins + codes[:, i], probabilities, bins * bins).reshape(bins, bins) / N
            after[j, :, i], after[i, :, j] = both.sum(1), both.sum(0)
    return alone, after


def _left(cell: np.ndarray, probabilities: np.ndarray, cells: int) -> np.ndarray:
    """(cells,) entropy of the mean probabilities of a cell's rows, times their number."""
    count = np.bincount(cell, minlength=cells)
    total = np.stack([np.bincount(cell, weights=p, minlength=cells) for p in probabilities.T], axis=1)
    return count * entropies(total / np.maximum(count, 1)[:, None])


def judged(chosen: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], first: np.intp) -> float:
    """What is left by the other half's rows, after this first test and the second ones that are best by the chosen half's."""
    after = chosen[1][first]
    return float(other[1][first][np.arange(len(after)), after.argmin(1)].sum())


# -- what is published ------------------------------------------------------------------------------------------------


def caption(settings: HeadroomSettings, data: Path) -> list[str]:
    return [
        f"Of each task {settings.rows:,} rows with the prior's own probabilities; results are read in {settings.bins} parts "
        "of equal share. Before anything is known, two tests, any of the features, may be asked for. The greedy oracle asks "
        "first for the test that tells most alone; the other looks two tests ahead. `headroom` is by how much less log loss "
        "the second is left with; `told_by_greedy` what two tests tell the greedy one, all in nats; `share_worth_seeing` of "
        f"tasks above {SMALLEST:g}; `tasks_needed` to tell a headroom of this size from none, by its own scatter over tasks.",
    ]


def table(records: list[dict]) -> pd.DataFrame:
    rows = []
    for family, part in pd.DataFrame(records).groupby("family", sort=False):
        gains = part["gain"].to_numpy()
        row = {"family": family, "headroom": gains.mean(), "headroom_low": np.nan, "headroom_high": np.nan}
        needed = np.nan
        if len(gains) > 1:
            found = paired_interval(gains, PUBLISHED)
            row |= {"headroom_low": found.low, "headroom_high": found.high}
            needed = units_needed(gains, gains.mean()) if gains.mean() > 0 else np.nan
        row |= {"told_by_greedy": part["told_by_greedy"].mean(), "share_worth_seeing": (gains > SMALLEST).mean()}
        rows.append({**row, "tasks_needed": needed, "tasks": len(gains)})
    return pd.DataFrame(rows)


def figure(table: pd.DataFrame):
    return figures.bars(table.assign(by="Headroom"), "family", "headroom", "by", "tasks", "nats")


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    found = [
        f"{r.family}: {r.headroom:.4f} [{r.headroom_low:.4f}, {r.headroom_high:.4f}] nats, {r.tasks} tasks."
        for r in table.itertuples()
    ]
    return ClaimVerdict(NO_CLAIM, " ".join(found))

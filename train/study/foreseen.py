"""`python -m train foreseen`: whether the results that the model foresees come as often, and where, as it says.

In random states of patients who are not in the context, every open test that the patient has was recorded: the result is
scored under what the model foresaw (l2m_core/model/results.py), under the column's own distribution (the marginal), and
under that of the rows nearest to the patient; and intervals of the model's distribution are held against how many
results lie in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import torch

from l2m_core.acquire.foreseen import FEWEST_RECORDED
from l2m_core.acquire.support import count_near, nearest_rows
from l2m_core.answering import devices
from l2m_core.cli import at_least
from l2m_core.errors import ConfigError
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.metrics import paired_interval
from l2m_core.model.columns import Columns
from l2m_core.model.results import cumulative, probability_up_to, rank_interval, value_loss
from train.study.evaluation.cells import Trial
from train.study.evaluation.report import publish
from train.study.markdown import markdown_table
from train.study.random_states import NamedTrial, in_random_states, options, random_state, sources

LEVELS = (0.5, 0.8, 0.95)  # of central intervals
CONFIDENCE = 0.95  # of the intervals of differences
NEAR_BINS = 10  # of the ranks, for the distribution among the nearest rows
PRIOR_ROWS = 5.0  # so many rows' worth of the column's own distribution is mixed into it
FEW_VALUES = 10  # a column with at most so many different values has levels, not intervals


def main(arguments: Sequence[str]) -> int:
    parser = options("foreseen", __doc__)
    parser.add_argument("--model", default="general", help="a released model, by name or folder")
    parser.add_argument("--tasks", type=at_least(1), default=8, help="of each family of the priors")
    given = parser.parse_args(arguments)
    devices.apply_option(given.device)
    devices.tell_of_gpu()
    model = load(given.model)
    if not model.release.config.value_bins:
        raise ConfigError(f"Model '{model.name}' foresees no results. Name one whose value_bins are above 0.")
    chosen = list(sources(given.data, given.tasks, given.only))
    results = measure(model, chosen, given.states)
    command = f"python -m train foreseen --model {given.model} --states {given.states} --tasks {given.tasks}"
    parts = [HEAD, f"## {model.name} ({model.fingerprint[:12]})", *describe(results)]
    parts.append(f"Made by `{command}`: {len(chosen)} cohorts, {len(results):,} results.")
    publish(given.out / "foreseen.md", "\n\n".join(parts) + "\n")
    return 0


def measure(model: L2M, chosen: Iterable[NamedTrial], states: int) -> pd.DataFrame:
    """One row for each recorded result of each state."""
    return in_random_states(model, chosen, states, results_of_state)


def results_of_state(memory: CohortMemory, trial: Trial, generator: np.random.Generator) -> pd.DataFrame:
    """Of a random patient of whom a random part is known, every other recorded result.

    Losses are in nats above the column's own distribution, so that the marginal's are 0. `position`: the share of the
    model's distribution that lies below the result, 0 … 1; of a result that several rows share, a random place in its share.
    """
    cohort, scale = memory.cohort, memory.scale
    row, x = random_state(cohort, trial, generator)
    is_open = np.isnan(x) & cohort.acquirable & ~np.isnan(trial.x[row])
    columns = np.flatnonzero(is_open & (scale.count[0].numpy() >= FEWEST_RECORDED))
    if not len(columns):
        return pd.DataFrame()
    density = memory.answer(x[None]).values
    assert density is not None
    foreseen = (
        torch.from_numpy(np.array(density[0], dtype=np.float32)).clamp_min(1e-12).log()[None, None]
    )  # (1, 1, d, V)
    result = torch.from_numpy(trial.x[row].astype(np.float32))[None, None]  # (1, 1, d)
    near = _among_near_rows(memory, scale, x)
    low, high = rank_interval(scale, result)
    ends = probability_up_to(cumulative(foreseen), torch.stack([low, high], dim=-1))[0, 0].numpy()  # (d, 2)
    place = generator.random(len(cohort.names))
    return pd.DataFrame(
        {
            "feature": [cohort.names[column] for column in columns],
            "is_number": [_has_many_values(cohort.x[:, column]) for column in columns],
            "foreseen": value_loss(foreseen, scale, result)[0, 0].numpy()[columns],
            "near": value_loss(near, scale, result)[0, 0].numpy()[columns],
            "position": (ends[:, 0] + place * (ends[:, 1] - ends[:, 0]))[columns],
        }
    )


def _among_near_rows(memory: CohortMemory, scale: Columns, x: np.ndarray) -> torch.Tensor:
    """(1, 1, d, NEAR_BINS) log density of the ranks among the nearest quarter of the rows, held towards a flat one."""
    near = nearest_rows(memory, x[None], count_near(len(memory.cohort)))[0]
    values = memory.cohort.x[near]  # (m, d)
    low, high = (ranks[0].numpy() for ranks in rank_interval(scale, torch.from_numpy(np.nan_to_num(values))[None]))
    edges = np.linspace(0, 1, NEAR_BINS + 1)
    # A value covers an interval of ranks; each bin gets the share of it that lies in the bin.
    overlap = np.minimum(high[..., None], edges[1:]) - np.maximum(low[..., None], edges[:-1])  # (m, d, NEAR_BINS)
    share = overlap.clip(0) / np.maximum(high - low, 1e-6)[..., None]
    counted = (share * ~np.isnan(values)[..., None]).sum(0)  # (d, NEAR_BINS)
    return torch.from_numpy((counted + PRIOR_ROWS / NEAR_BINS).astype(np.float32)).log()[None, None]


def _has_many_values(values: np.ndarray) -> bool:
    return len(np.unique(values[~np.isnan(values)])) > FEW_VALUES


# -- what is said of them ---------------------------------------------------------------------------------------------


def describe(results: pd.DataFrame) -> list[str]:
    """Tables for a page: what holds over cohorts, and each cohort, or family of tasks, by itself."""
    parts = []
    for title, is_generated in (("Tables", False), ("Tasks of the priors", True)):
        chosen = results[(results.family != "") == is_generated]
        if len(chosen):
            shown = by(chosen, "family" if is_generated else "cohort")
            parts += [f"### {title}", *sentences(by(chosen, "cohort")), markdown_table(shown)]
    return parts


def by(results: pd.DataFrame, column: str) -> pd.DataFrame:
    """The scores of each cohort, or family."""
    return pd.DataFrame([{column: name, **scores(part)} for name, part in results.groupby(column, sort=False)])


def scores(results: pd.DataFrame) -> dict[str, float]:
    """Mean log losses above the marginal's, and the share of numbers in the model's intervals."""
    numbers = results[results.is_number]
    from_middle = (numbers.position - 0.5).abs()
    return {
        "results": len(results),
        "foreseen": float(results.foreseen.mean()),
        "near": float(results.near.mean()),
        "numbers": len(numbers),
        **{f"in_{level:.0%}": float((from_middle <= level / 2).mean()) for level in LEVELS},
    }


def sentences(by_cohort: pd.DataFrame) -> list[str]:
    """Over cohorts, each with the same weight; coverage over all their numbers."""
    said = []
    for words, difference in (
        ("the column's own distribution", -by_cohort.foreseen),
        ("the nearest rows", by_cohort.near - by_cohort.foreseen),
    ):
        better = int((difference > 0).sum())
        found = paired_interval(difference.to_numpy(), CONFIDENCE)
        said.append(
            f"Loss under {words} less that under what was foreseen: {found:.3f} nats a result; above 0 in {better} of "
            f"{len(by_cohort)} cohorts."
        )
    held = by_cohort[by_cohort.numbers > 0]
    if len(held):
        inside = {level: np.average(held[f"in_{level:.0%}"], weights=held.numbers) for level in LEVELS}
        said.append(
            f"Of {held.numbers.sum():,} numbers "
            + ", ".join(f"{share:.1%} lie in the interval of {level:.0%}" for level, share in inside.items())
            + "."
        )
    return said


HEAD = f"""# Whether results come as they were foreseen

Random states of patients outside the context; each other recorded result of theirs, of tests that at least
{FEWEST_RECORDED} rows of the context have. `foreseen`: log loss of the result under what the model foresaw, in nats above
the column's own distribution (below 0: better than it); `near`: the same of the distribution among the nearest quarter of
the rows, {NEAR_BINS} bins of the ranks, with {PRIOR_ROWS:.0f} rows' worth of the column's own mixed in. `in_50%` and so on:
the share of `numbers` (of columns with more than {FEW_VALUES} different values) in the model's central interval of that
size. Intervals in brackets are of {CONFIDENCE:.0%}, by t over cohorts."""

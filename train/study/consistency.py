"""`python -m train consistency`: whether the gains that are shown are what the model itself would learn.

In random states of patients who are not in the context, each of some open tests has four gains: the gain head's; the
exact one, from the model's own answers to the results that it foresees (l2m_core/acquire/information.py); what a
step-through shows; and a reference that uses neither head: the mutual information of the model's answers over values
recorded in the rows nearest to the patient. Then the recorded result is entered, and the drop in log loss noted.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

from l2m_core.acquire.information import Outlook, as_probabilities, filled, mutual_information, outlooks
from l2m_core.acquire.policies import Gain
from l2m_core.acquire.support import count_near, nearest_rows
from l2m_core.cohort import Cohort
from l2m_core.errors import RangeWarning
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.metrics import row_losses
from train.study.evaluation.cells import Cell, Trial, draw_trial
from train.study.evaluation.manifest import default_data_folder, read_manifest
from train.study.evaluation.report import publish
from train.study.experiments.families import Family, draw
from train.study.markdown import markdown_table

TESTS = 10  # open tests of a state that are compared
NEAR_VALUES = 12  # recorded values of near rows that the reference tries
LEAST_TOLD = 0.001  # nats; where nothing tells as much, there is nothing to give up and no size to compare
CONTEXTS = (50, 400, 2000)  # rows; cohorts take them in turn
PAIRS = (("head", "exact"), ("shown", "exact"), ("head", "reference"), ("shown", "reference"))
# Tasks of the priors, beside tables: short, wide, long, many classes, continuous.
GENERATED = (
    Family("generated_short", prior="synthetic", features=8, context=100, test_rows=60),
    Family("generated_wide", prior="synthetic", features=64, context=300, test_rows=60),
    Family("generated_long", prior="synthetic", features=20, context=3000, test_rows=60),
    Family("generated_findings", prior="findings", features=16, context=400, test_rows=60),
    Family(
        "generated_number",
        prior="synthetic",
        settings={"outcome": "continuous"},
        features=12,
        context=400,
        test_rows=60,
    ),
)


@dataclass(frozen=True)
class Source:
    """A trial under a name."""

    name: str
    trial: Trial


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m train consistency", description=__doc__)
    parser.add_argument("--model", nargs="+", default=["general"], help="released models, by name or folder")
    parser.add_argument("--data", type=Path, default=default_data_folder(), help="cohorts with a manifest.yaml")
    parser.add_argument("--states", type=int, default=30, help="of each cohort")
    parser.add_argument("--only", nargs="*", default=[], help="names of cohorts, instead of all")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    given = parser.parse_args(arguments)
    chosen = [s for s in sources(given.data) if not given.only or s.name in given.only]
    parts = [HEAD]
    for name in given.model:
        model = load(name)
        gains = measure(model, chosen, given.states)
        parts += [f"## {model.name} ({model.fingerprint[:12]})", *describe(gains)]
    command = f"python -m train consistency --model {' '.join(given.model)} --states {given.states}"
    parts.append(f"Made by `{command}`: {len(chosen)} cohorts.")
    publish(given.out / "consistency.md", "\n\n".join(parts) + "\n")
    return 0


def sources(folder: Path) -> Iterator[Source]:
    """Shared tables where they are there, those that scikit-learn brings, and tasks of the priors."""
    tables = read_manifest(folder) if (folder / "manifest.yaml").is_file() else []
    for index, table in enumerate(tables):
        yield Source(table.name, _trial(table.load(), table.name, CONTEXTS[index % len(CONTEXTS)]))
    bundled = (
        (datasets.load_breast_cancer, 100, None),
        (datasets.load_wine, 90, None),
        (datasets.load_diabetes, 200, "continuous"),
    )
    for load_table, context, kind in bundled:
        found = load_table()
        y = found.target.astype(np.float32) if kind else found.target
        name = load_table.__name__.removeprefix("load_")
        cohort = Cohort.from_arrays(
            found.data.astype(np.float32), y, names=list(map(str, found.feature_names)), kind=kind, name=name
        )
        yield Source(name, _trial(cohort, name, context))
    for family in GENERATED:
        yield Source(family.name, draw(family, 0, Path()))


def _trial(cohort: Cohort, name: str, context: int) -> Trial:
    """At most `context` rows to learn from, at least 40 others to ask about."""
    return draw_trial(cohort, Cell(name, max(20, min(context, len(cohort) - 40)), 0.0, 0), test_rows=60)


def measure(model: L2M, chosen: Sequence[Source], states: int) -> pd.DataFrame:
    """One row for each test of each state: its gains, and what its recorded result told."""
    tables = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        for source in chosen:
            memory = model.condition(source.trial.context)
            generator = np.random.default_rng(0)
            for state in range(states):
                table = gains_of_state(memory, source.trial, generator)
                tables.append(table.assign(cohort=source.name, state=state))
            print(f"{source.name}: {states} states", flush=True)
    return pd.concat(tables, ignore_index=True)


def gains_of_state(memory: CohortMemory, trial: Trial, generator: np.random.Generator) -> pd.DataFrame:
    """A random patient of whom a random part is known, and some of the open tests."""
    cohort = memory.cohort
    row = int(generator.integers(len(trial.x)))
    is_known = ~np.isnan(trial.x[row]) & (
        ~cohort.acquirable | (generator.random(len(cohort.names)) < generator.random())
    )
    x = np.where(is_known, trial.x[row], np.nan).astype(np.float32)
    open_columns = np.flatnonzero(~is_known & cohort.acquirable & (cohort.r.sum(0) >= 10))
    columns = generator.permutation(open_columns)[:TESTS]
    answer = memory.answer(x[None])
    shown = Gain().scores(memory, x[None], answer)[0]
    exact: list[Outlook | None] = [None] * len(columns)
    if answer.values is not None:
        exact = outlooks(memory, x, answer.values[0], [[c] for c in columns])
    y = trial.y[row : row + 1]
    before = row_losses(answer.prediction, y)[0]
    rows = []
    for column, outlook in zip(columns, exact, strict=True):
        is_recorded = not np.isnan(trial.x[row, column])
        after = memory.predictions(filled(x, [column], trial.x[row, column].reshape(1, 1))) if is_recorded else None
        rows.append(
            {
                "feature": cohort.names[column],
                "head": float(answer.gain[0, column]),
                "exact": np.nan if outlook is None else outlook.gain,
                "shown": float(shown[column]),
                "reference": reference_gain(memory, x, int(column)),
                "balanced": np.nan if outlook is None else float(outlook.is_balanced),
                "drop": np.nan if after is None else float(before - row_losses(after, y)[0]),
            }
        )
    return pd.DataFrame(rows)


def reference_gain(memory: CohortMemory, x: np.ndarray, column: int) -> float:
    """Mutual information of the model's answers over values recorded in the nearest quarter of the rows, all as likely."""
    near = nearest_rows(memory, x[None], count_near(len(memory.cohort)))[0]
    values = memory.cohort.x[near, column]
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return float("nan")
    if len(np.unique(values)) <= NEAR_VALUES:
        tried, times = np.unique(values, return_counts=True)
        chances = times / len(values)
    else:
        tried = np.quantile(values, (np.arange(NEAR_VALUES) + 0.5) / NEAR_VALUES, method="nearest")
        chances = np.full(NEAR_VALUES, 1 / NEAR_VALUES)
    return mutual_information(chances, as_probabilities(memory.predictions(filled(x, [column], tried[:, None]))))


# -- what is said of them ---------------------------------------------------------------------------------------------


def describe(gains: pd.DataFrame) -> list[str]:
    """Tables for a page."""
    parts = [markdown_table(agreement(gains))]
    exact = gains[gains.exact.notna()]
    if len(exact):
        parts.append(
            f"Previews average to the belief within one point: {exact.balanced.mean():.1%} of {len(exact)} tests."
        )
        by_cohort = [
            {"cohort": name, **_agree(part, "shown", "reference")} for name, part in gains.groupby("cohort", sort=False)
        ]
        parts += ["Shown against the reference, by cohort:", markdown_table(pd.DataFrame(by_cohort))]
    return [*parts, "What was told by recorded results, by decile of the gain shown:", markdown_table(realised(gains))]


def agreement(gains: pd.DataFrame) -> pd.DataFrame:
    """How far two ways of computing a gain agree, over states."""
    return pd.DataFrame([{"gain": one, "against": other, **_agree(gains, one, other)} for one, other in PAIRS])


def _agree(gains: pd.DataFrame, one: str, other: str) -> dict[str, float]:
    rank, among_two, given_up, factor = [], [], [], []
    for _, state in gains.groupby(["cohort", "state"]):
        pair = state[[one, other]].dropna()
        pair = pair[np.isfinite(pair).all(axis=1)]
        if len(pair) < 3 or pair[other].max() < LEAST_TOLD:
            continue
        truth, best = pair[other].to_numpy(), int(pair[one].to_numpy().argmax())
        rank.append(pair[one].rank().corr(pair[other].rank()) if pair[one].nunique() > 1 else 0.0)
        among_two.append((truth > truth[best]).sum() < 2)
        given_up.append(1 - truth[best] / truth.max())
        factor.append(np.exp(abs(np.log(max(pair[one].iloc[best], 1e-5) / max(truth[best], 1e-5)))))
    if not rank:
        return {"states": 0}
    return {
        "states": len(rank),
        "rank_agreement": float(np.mean(rank)),
        "among_two_best": float(np.mean(among_two)),
        "given_up": float(np.mean(given_up)),
        "factor": float(np.median(factor)),
    }


def realised(gains: pd.DataFrame) -> pd.DataFrame:
    """Mean gain shown and mean drop in log loss, by decile of the gain shown."""
    known = gains[gains["drop"].notna() & np.isfinite(gains.shown)]
    decile = pd.qcut(known.shown.rank(method="first"), 10, labels=False) + 1
    table = known.groupby(decile).agg(
        shown=("shown", "mean"), drop=("drop", "mean"), error=("drop", "sem"), tests=("drop", "size")
    )
    return table.reset_index(names="decile")


HEAD = """# Whether gains are what the model itself would learn

Random states of patients outside the context. `head`: the gain head; `exact`: mutual information under the results that the
model foresees and its own answers to them; `shown`: what a step-through shows; `reference`: mutual information of the model's
answers over values recorded in the nearest quarter of the rows, which uses neither head. `rank_agreement`: Spearman's, mean over
states; `among_two_best`: share of states in which the first test is one of the two that tell most by the second column;
`given_up`: share of the best gain; `factor`: by how much the size is off, median. States in which no test tells 0.001 nats are
left out."""

"""AFABench's layout of evaluations: one CSV file for each method and task, one row for each patient and action.

As its evaluation script writes them (github.com/Linusaronsson/AFA-Benchmark, April 2026): `idx`, the patient, counted from 0 in
each batch; `prev_selections_performed`, a list of selections counted from 0; `action_performed`, 0 to stop or a selection + 1;
the most likely class before that action, by the method (`builtin`) or by a classifier of its own (`external`); `true_class`; the
cost with that action; `forced_stop`, whether the budget ended it; and the run's seed and budget. An absent value is `null`. There
are classes only, and no probabilities, so accuracy is what can be scored. Its data sets and methods are bundles of pickled
tensors, which are programs: they are neither read nor written here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.acquire.rollout import Rollout
from l2m_core.errors import ConfigError, InputError
from l2m_core.learn.checkpoints import write_text
from train.study.evaluation.cells import Trial

CLASSIFIERS = ("builtin", "external")
WHOLE = ("action_performed", "true_class", "idx", "eval_seed")
COLUMNS = (
    "prev_selections_performed",
    "action_performed",
    "builtin_predicted_class",
    "external_predicted_class",
    "true_class",
    "accumulated_cost",
    "idx",
    "forced_stop",
    "eval_seed",
    "eval_hard_budget",
)
FILE = "eval_data.csv"
NULL = "null"


@dataclass(frozen=True)
class Evaluation:
    """What a method did and said of n patients, in at most T actions."""

    actions: np.ndarray
    """(n, T) selections counted from 0, -1 from the stop on."""
    y: np.ndarray
    """(n,) class codes."""
    predicted: dict[str, np.ndarray]
    """(n, T + 1) class codes before each action, by classifier; what was said at the stop stands from then on."""
    cost: np.ndarray
    """(n, T + 1) spent so far."""
    forced: np.ndarray
    """(n,) bool: whether the budget ended it."""
    seed: int = 0
    budget: float | None = None

    @property
    def taken(self) -> np.ndarray:
        """(n,) actions."""
        return (self.actions >= 0).sum(1)

    def scores(self, classifier: str) -> dict[str, Any]:
        """Accuracy after 0 … T actions, at the end, and how many actions there were."""
        right = (self.predicted[classifier] == self.y[:, None]).mean(0)
        return {
            "accuracy_by_budget": right.tolist(),
            "accuracy": float(right.mean()),
            "accuracy_end": float(right[-1]),
            "actions": float(self.taken.mean()),
        }


def evaluation_of(rollout: Rollout, trial: Trial, seed: int) -> Evaluation:
    """Of a roll-out of ours. A selection is a feature's column, of a panel its first one; each action costs 1."""
    context = trial.context
    if context.kind == "continuous":
        raise ConfigError(f"{context.name}: the outcome is continuous; AFABench has classes only.")
    first = np.array([np.flatnonzero(context.groups == group)[0] for group in context.groups])
    is_action = rollout.actions >= 0
    left = (context.acquirable & ~np.isnan(trial.x) & ~rollout.known).any(1)
    predicted = np.stack([np.argmax(p, axis=1) for p in rollout.predictions], axis=1)  # type: ignore[arg-type]
    cost = np.pad(is_action.cumsum(1).astype(float), ((0, 0), (1, 0)))
    budget = rollout.actions.shape[1]
    return Evaluation(
        actions=np.where(is_action, first[rollout.actions], -1),
        y=np.asarray(trial.y, dtype=np.int64),
        predicted={"builtin": predicted},
        cost=cost,
        forced=is_action.all(1) & left,
        seed=seed,
        budget=float(budget),
    )


# -- writing ----------------------------------------------------------------------------------------------------------


def write_evaluation(evaluation: Evaluation, file: Path) -> None:
    """Action by action over all patients, as there."""
    rows = [
        row_of(evaluation, i, step) for step in range(evaluation.actions.shape[1] + 1) for i in range(len(evaluation.y))
    ]
    table = pd.DataFrame([row for row in rows if row is not None], columns=list(COLUMNS))
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, table.to_csv(index=False, na_rep=NULL))


def row_of(evaluation: Evaluation, i: int, step: int) -> dict[str, Any] | None:
    """Of patient i before action `step`; none after the stop."""
    taken = int(evaluation.taken[i])
    if step > taken:
        return None
    stops = step == taken
    said = {name: evaluation.predicted[name][i, step] if name in evaluation.predicted else NULL for name in CLASSIFIERS}
    return {
        "prev_selections_performed": str(evaluation.actions[i, :step].tolist()),
        "action_performed": 0 if stops else evaluation.actions[i, step] + 1,
        **{f"{name}_predicted_class": value for name, value in said.items()},
        "true_class": evaluation.y[i],
        "accumulated_cost": evaluation.cost[i, step if stops else step + 1],
        "idx": i,
        "forced_stop": bool(stops and evaluation.forced[i]),
        "eval_seed": evaluation.seed,
        "eval_hard_budget": NULL if evaluation.budget is None else evaluation.budget,
    }


# -- reading ----------------------------------------------------------------------------------------------------------


@dataclass
class PatientEpisode:
    """One patient's rows, as they come."""

    actions: list[int] = field(default_factory=list)
    costs: list[float] = field(default_factory=lambda: [0.0])
    said: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in CLASSIFIERS})
    y: int = 0
    forced: bool = False
    ended: bool = False


def read_evaluation(file: Path) -> Evaluation:
    """Refuses what it cannot read, naming the row."""
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    absent = [name for name in COLUMNS if name not in table]
    if absent:
        raise InputError(f"{file.name} lacks the column {absent[0]!r}; it is no evaluation in AFABench's layout.")
    episodes: dict[tuple[int, int], PatientEpisode] = {}
    batch = 0
    for number, row in enumerate(table.to_dict("records"), 2):  # line of the file
        try:
            past, values = selections(row["prev_selections_performed"]), {name: int(row[name]) for name in WHOLE}
            batch += not past and values["idx"] == 0  # each batch begins with its first patient
            take_row(episodes.setdefault((batch, values["idx"]), PatientEpisode()), row, past, values)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file.name}, line {number}: {error}. Write the file again.") from None
    unfinished = [idx for (_, idx), episode in episodes.items() if not episode.ended]
    if unfinished or not episodes:
        what = f"idx {unfinished[0]} has no row that stops" if unfinished else "there are no rows"
        raise InputError(f"{file.name}: {what}. Write the file again.")
    seed, budget = int(table["eval_seed"].iloc[0]), table["eval_hard_budget"].iloc[0]
    return joined(list(episodes.values()), seed, None if budget == NULL else float(budget))


def selections(text: str) -> list[int]:
    found = json.loads(text)
    if not isinstance(found, list) or any(type(value) is not int or value < 0 for value in found):
        raise ValueError(f"prev_selections_performed is {text!r}; it must be a list of selections")
    return found


def take_row(episode: PatientEpisode, row: dict[str, str], past: list[int], values: dict[str, int]) -> None:
    """Adds one row to the patient that it is of."""
    action = values["action_performed"]
    if episode.ended or past != episode.actions:
        raise ValueError(f"idx {values['idx']} does not follow from the rows before it")
    if action < 0 or row["forced_stop"] not in ("True", "False"):
        raise ValueError("action_performed must be 0 or more, and forced_stop True or False")
    for name in CLASSIFIERS:
        said = row[f"{name}_predicted_class"]
        episode.said[name] += [] if said == NULL else [int(said)]
    episode.y = values["true_class"]
    if action == 0:
        episode.ended, episode.forced = True, row["forced_stop"] == "True"
        return
    episode.actions.append(action - 1)
    episode.costs.append(float(row["accumulated_cost"]))


def joined(episodes: list[PatientEpisode], seed: int, budget: float | None) -> Evaluation:
    """Patients of different lengths in one table each; the last prediction and cost stand from the stop on."""
    most = max(len(episode.actions) for episode in episodes)
    steps = np.minimum(np.arange(most + 1), np.array([[len(episode.actions)] for episode in episodes]))

    def filled(values: list[list[Any]]) -> np.ndarray:
        return np.array([[row[step] for step in own] for row, own in zip(values, steps, strict=True)])

    whole = [c for c in CLASSIFIERS if all(len(e.said[c]) == len(e.actions) + 1 for e in episodes)]
    return Evaluation(
        actions=np.array([e.actions + [-1] * (most - len(e.actions)) for e in episodes], dtype=np.int64),
        y=np.array([e.y for e in episodes]),
        predicted={name: filled([e.said[name] for e in episodes]) for name in whole},
        cost=filled([e.costs for e in episodes]),
        forced=np.array([e.forced for e in episodes]),
        seed=seed,
        budget=budget,
    )

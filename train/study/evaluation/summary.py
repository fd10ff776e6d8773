"""From the records of a suite to what they say: per cell, over all cells, and where L2M loses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from l2m_core.metrics import Interval, paired_interval

CELL = ["cohort", "context", "missing"]
TASK_SPECIFIC = ("gdfs", "dime", "dqn")
BASE_RATE = "base_rate"
MODEL_ALONE = "l2m"
NEAR = 0.005
"""A method within this share of the lowest log loss counts as level with it."""
WORSE = 0.01


@dataclass(frozen=True)
class Summary:
    """What a suite says of one kind of outcome; `lead` is the method that the others are compared with."""

    lead: str
    trials: int
    """(cell, seed) pairs that every method finished; no other enters."""
    left_out: int
    methods: pd.DataFrame
    """By method: mean scores, and the information gained over the base rate."""
    cells: pd.DataFrame
    """One row for each cell: log loss by method, the lowest method, what the lead loses to it."""

    @property
    def information(self) -> pd.Series:
        return self.methods["information"]

    @property
    def best_task_specific(self) -> str | None:
        have = [name for name in TASK_SPECIFIC if name in self.methods.index]
        return str(self.information[have].idxmax()) if have else None

    @property
    def ratio(self) -> float:
        """Information of the lead against that of the best method that learns from the context alone."""
        best = self.best_task_specific
        return float("nan") if best is None else float(self.information[self.lead] / self.information[best])

    @property
    def hindsight(self) -> float:
        """`ratio` of whoever knew beforehand which method is the lowest of each cell: more than any method here can have."""
        best = self.best_task_specific
        if best is None or BASE_RATE not in self.cells:
            return float("nan")
        return float((self.cells[BASE_RATE] - self._lowest).mean() / self.information[best])

    @property
    def hindsight_skill(self) -> float:
        """The skill of whoever knew beforehand which method is the lowest of each cell."""
        return float((1 - self._lowest / self.cells[BASE_RATE]).mean())

    @property
    def _lowest(self) -> pd.Series:
        """The lowest loss in each cell, the base rate left out."""
        return self.cells[[name for name in self.methods.index if name != BASE_RATE]].min(axis=1)

    @property
    def share_lowest(self) -> float:
        return float((self.cells["behind"] <= NEAR).mean())

    @property
    def lowest_of_all(self) -> int:
        """Cells in which the lead is lowest or level with it, were the same model's other forms rivals too."""
        lowest = self.cells[list(self.methods.index)].min(axis=1)
        return int(((self.cells[self.lead] - lowest) / lowest.abs() <= NEAR).sum())

    def skill_beyond(self, other: str) -> tuple[Interval, Interval] | None:
        """By how much the lead's skill exceeds another method's: intervals over cells, and over cohorts."""
        if not {other, BASE_RATE} <= set(self.cells):
            return None
        more = (self.cells[other] - self.cells[self.lead]) / self.cells[BASE_RATE]
        return _over_cells_and_cohorts(more.to_numpy(), self.cells["cohort"].to_numpy())

    @property
    def best_rival(self) -> str | None:
        """The other method with the lowest mean over cells, the same for all of them."""
        others = rivals(self.lead, self.methods.index)
        return str(self.cells[others].mean().idxmin()) if others else None

    def lower_than(self, other: str) -> tuple[Interval, Interval]:
        """By how much the lead's score is lower than another method's: intervals over cells, and over cohorts."""
        lower = (self.cells[other] - self.cells[self.lead]).to_numpy()
        return _over_cells_and_cohorts(lower, self.cells["cohort"].to_numpy())

    @property
    def worse_than_base_rate(self) -> pd.DataFrame:
        if BASE_RATE not in self.cells:
            return self.cells.iloc[:0]
        return self.cells[self.cells[self.lead] > (1 + WORSE) * self.cells[BASE_RATE]]

    @property
    def losing(self) -> pd.DataFrame:
        """Cells in which another method is lower by more than the margin, worst first."""
        return self.cells[self.cells["behind"] > NEAR].sort_values("behind", ascending=False)


def summarise(records: Sequence[dict], lead: str, score: str = "log_loss") -> Summary | None:
    """None where no trial has been finished by every method that appears."""
    table = pd.DataFrame([r for r in records if not r.get("error")])
    if table.empty or lead not in set(table["method"]):
        return None
    trials = table.pivot_table(index=[*CELL, "seed"], columns="method", values=score, aggfunc="last")
    whole = trials.dropna()
    if whole.empty:
        return None
    finished = table.set_index([*CELL, "seed"]).loc[lambda t: t.index.isin(whole.index)].reset_index()
    cells = whole.groupby(CELL).mean()
    methods = _by_method(finished, cells)
    cells = cells.reset_index()
    others = rivals(lead, whole.columns)
    cells["seeds"] = whole.groupby(CELL).size().to_numpy()
    if others:
        cells["lowest"] = cells[[lead, *others]].idxmin(axis=1)
        lowest = cells[[lead, *others]].min(axis=1)
        cells["behind"] = (cells[lead] - lowest) / lowest.abs()
    else:
        cells["lowest"], cells["behind"] = lead, 0.0
    return Summary(lead, len(whole), len(trials) - len(whole), methods, cells)


def rivals(lead: str, methods: Iterable[str]) -> list[str]:
    """The methods that a lead is compared with. A model's other forms (alone, in random order …) are no rivals of it."""

    def is_form(name: str) -> bool:
        return name.split("_")[0] == MODEL_ALONE

    return [name for name in methods if name != lead and not (is_form(name) and is_form(lead))]


def _by_method(finished: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Seeds are averaged within cells first, so that every cell weighs the same."""
    numbers = [c for c in finished.select_dtypes("number") if c not in (*CELL, "seed", "features", "n_test", "budget")]
    means = finished.groupby(["method", *CELL])[numbers].mean().groupby("method").mean()
    means = means.dropna(axis=1, how="all")
    if BASE_RATE in cells:
        means.insert(0, "information", (cells[BASE_RATE].mean() - cells.mean())[means.index])
        means.insert(1, "skill", (1 - cells.div(cells[BASE_RATE], axis=0)).mean()[means.index])
    order = means["log_loss"].sort_values().index if "log_loss" in means else means.index
    return means.loc[order]


def paired(records: Sequence[dict], lead: str, other: str) -> tuple[Interval, Interval] | None:
    """How much lower the lead's log loss is than another method's: intervals over cells, and over cohorts."""
    table = pd.DataFrame([r for r in records if not r.get("error") and r["method"] in (lead, other)])
    if table.empty or table["method"].nunique() < 2:
        return None
    trials = table.pivot_table(index=[*CELL, "seed"], columns="method", values="log_loss", aggfunc="last").dropna()
    if trials.empty:
        return None
    cells = trials.groupby(CELL).mean()
    difference = (cells[other] - cells[lead]).to_numpy()
    return _over_cells_and_cohorts(difference, cells.index.get_level_values("cohort").to_numpy())


def _over_cells_and_cohorts(difference: np.ndarray, cohorts: np.ndarray) -> tuple[Interval, Interval]:
    """difference, cohorts: (cells,)"""
    return paired_interval(difference), paired_interval(difference, groups=cohorts)


@dataclass(frozen=True)
class Change:
    """One score of the lead, in an earlier table and now, over the trials (cell × seed) that both have."""

    score: str
    before: float
    now: float
    over_cells: Interval
    over_cohorts: Interval
    trials: int
    left_out: int
    """Trials that one of the two tables alone has finished."""


SKILL, SKILL_AT_RANDOM, SAVED = "skill", "skill in a random order", "saved by its own order"
SCORES = {
    SKILL: ("{lead}", BASE_RATE),
    SKILL_AT_RANDOM: ("{lead}_random", BASE_RATE),
    SAVED: ("{lead}", "{lead}_random"),
}
"""Of the lead, and the two methods whose log losses each is computed from."""


def changes(records: Sequence[dict], earlier: Sequence[dict], lead: str) -> list[Change]:
    """How the lead's skill and the log loss that its own order saves have changed; more is better. None without a common trial.

    A model that predicts better has more skill in a random order too, and then less is left for its own order to save.

    Of a table from before there were councils: since the model alone, which is what was answered with.
    """
    lead_before = lead if any(record["method"] == lead for record in earlier) else MODEL_ALONE
    losses_now, losses_before = _losses_by_trial(records), _losses_by_trial(earlier)
    found = []
    for score, methods in SCORES.items():
        needed, needed_before = ([name.format(lead=name_of) for name in methods] for name_of in (lead, lead_before))
        if not (set(needed) <= set(losses_now) and set(needed_before) <= set(losses_before)):
            continue
        now, before = losses_now[needed].dropna(), losses_before[needed_before].dropna()
        both = now.index.intersection(before.index)
        if both.empty:
            continue
        values = {"before": before.loc[both], "now": now.loc[both]}
        cells = pd.DataFrame({name: _score(score, losses.groupby(CELL).mean()) for name, losses in values.items()})
        cohorts = cells.index.get_level_values("cohort").to_numpy()
        intervals = _over_cells_and_cohorts((cells.now - cells.before).to_numpy(), cohorts)
        left_out = len(now.index.union(before.index)) - len(both)
        found.append(Change(score, cells.before.mean(), cells.now.mean(), *intervals, len(both), left_out))
    return found


def _score(score: str, losses: pd.DataFrame) -> pd.Series:
    """By cell: the share of the base rate's log loss that is saved; or the log loss that the own order saves beyond a random
    one. losses: (cells, 2) of the methods of `SCORES`, in that order."""
    first, second = losses.iloc[:, 0], losses.iloc[:, 1]
    return second - first if score == SAVED else 1 - first / second


def _losses_by_trial(records: Sequence[dict]) -> pd.DataFrame:
    """Log loss by trial and method, of outcomes with classes; NaN where a method has not finished a trial."""
    table = pd.DataFrame(
        [r for r in records if not r.get("error") and r.get("kind") != "continuous"],
        columns=[*CELL, "seed", "method", "log_loss"],
    )
    return table.pivot_table(index=[*CELL, "seed"], columns="method", values="log_loss", aggfunc="last")


def errors(records: Sequence[dict]) -> pd.DataFrame:
    """What failed, with the reason."""
    failed = [r for r in records if r.get("error")]
    return pd.DataFrame(failed, columns=[*CELL, "seed", "method", "error"])

"""Rules that verdicts share: which records are pairs, what an interval of their differences says, which gates come first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.methods.l2m import GENERAL
from l2m_core.metrics import paired_interval
from train.study.experiments import figures, power
from train.study.experiments.inference import (
    LEVEL,
    SMALLEST,
    rank_interval,
    units_needed,
    units_needed_by_rank,
)

SEEN, NOT_SEEN, NOT_TESTABLE, NO_CLAIM = "seen", "not seen", "not testable here", "no claim"


@dataclass(frozen=True)
class ClaimVerdict:
    """SEEN, NOT_SEEN, NOT_TESTABLE or NO_CLAIM, and the numbers that say so."""

    status: str
    reason: str
    needs: tuple[power.Need, ...] = ()
    """Of each comparison that it stands on."""


def finished(records: Sequence[dict]) -> list[dict]:
    """Without those of methods that failed."""
    return [record for record in records if not record.get("error")]


def pairs(records: Sequence[dict], score: str, better: str, worse: str, within: Sequence[str]) -> np.ndarray:
    """(n,) score of `worse` minus that of `better` on the same trial: above zero where `better` is better (lower)."""
    return named_pairs(records, score, better, worse, within).to_numpy()


def named_pairs(records: Sequence[dict], score: str, better: str, worse: str, within: Sequence[str]) -> pd.Series:
    """The same under the names of independent units, so that pairs of two kinds can be paired again."""
    table = pd.DataFrame([r for r in finished(records) if r["method"] in (better, worse)])
    if table.empty or table["method"].nunique() < 2:
        return pd.Series(dtype=float)
    wide = table.pivot_table(index=list(within), columns="method", values=score, aggfunc="mean").dropna()
    differences = wide[worse] - wide[better]
    if "unit" not in table:
        return differences
    # Several splits of one real table are one unit.
    unit = table.drop_duplicates(list(within)).set_index(list(within))["unit"]
    return differences.groupby(unit.reindex(differences.index).to_numpy()).mean()


def with_units(records: Sequence[dict], settings: Any) -> list[dict]:
    """Each record with what is independent of all others: its task, or of real outcomes the table, of which tasks are splits;
    and whether its outcomes are real."""
    tables = {f.name: f.data for f in settings.families if f.source == "cohort"}
    return [
        {**r, "unit": tables.get(r["family"]) or f"{r['family']}/{r['task']}", "real": r["family"] in tables}
        for r in records
    ]


def tidy(records: Sequence[dict]) -> pd.DataFrame:
    """One row for each task, method, step and score: what anybody needs to compute a verdict of their own."""
    names = ("family", "task", "unit", "variant", "method")
    rows = []
    for record in records:
        # A text says which of several things a score is of, such as an estimator's name.
        texts = {name: value for name, value in record.items() if isinstance(value, str)}
        facts = {name: record.get(name, "") for name in names} | texts
        for score, value in record.items():
            if score in names or isinstance(value, bool | str | dict | None):
                continue
            own = record.get("step", "")
            steps = list(enumerate(value)) if isinstance(value, list) else [(own, value)]
            rows += [
                {**facts, "score": score.removesuffix("_by_budget"), "step": step, "value": v} for step, v in steps
            ]
    return pd.DataFrame(rows)


def gated(verdict: ClaimVerdict, records: Sequence[dict], method: str) -> ClaimVerdict:
    """The verdict, if the model passes two gates in every family: under the base rate, and better with more known. Tables with
    outcomes of their own are one family here: a single one may hold nothing to know."""
    failed = gates_failed(records, method) if method else []
    if not failed:
        return verdict
    reason = f"No verdict, since the model does not pass its gates: {' '.join(failed)} {verdict.reason}"
    return replace(verdict, status=NOT_TESTABLE, reason=reason)


def gates_note(records: Sequence[dict], method: str) -> str:
    """Whether the model passed, for the page."""
    if not method:
        return "None: what is judged here is not whether a model predicts well."
    families = f"In every family{' (real tables together are one)' if any(map(_is_real, records)) else ''}"
    what = f"{families} {figures.named(method)} must be under the base rate, and better with more features known"
    failed = gates_failed(records, method)
    return f"{what}: {' '.join(failed) or 'it is.'}"


def gates_failed(records: Sequence[dict], method: str) -> list[str]:
    found = []
    own = [r for r in finished(records) if r["method"] == method and r.get("log_loss") is not None]
    for family in dict.fromkeys(map(_gate_of, own)):
        part = [r for r in own if _gate_of(r) == family]
        based = [r for r in part if r.get("base_rate") is not None]
        if based and np.mean([r["log_loss"] for r in based]) >= np.mean([r["base_rate"] for r in based]):
            found.append(f"on {family} its log loss is not under the base rate's.")
        curve = _curve(part)
        if len(curve) > 1 and curve[-1] >= curve[0]:
            found.append(f"on {family} its log loss does not fall as more features are known.")
    return found


def _is_real(record: dict) -> bool:
    return bool(record.get("real"))


def _gate_of(record: dict) -> str:
    return "the real tables" if _is_real(record) else record["family"]


def _curve(records: Sequence[dict]) -> list[float]:
    """Mean log loss at the first step and at each record's own last one, or by the step that records name."""
    walks = [record["log_loss_by_budget"] for record in records if record.get("log_loss_by_budget")]
    if walks:  # families differ in how many steps they have
        return [float(np.mean([walk[0] for walk in walks])), float(np.mean([walk[-1] for walk in walks]))]
    steps: dict[int, list[float]] = {}
    for record in records:
        if "step" in record:
            steps.setdefault(record["step"], []).append(record["log_loss"])
    return [float(np.mean(steps[step])) for step in sorted(steps)]


def judge(
    differences: np.ndarray, what: str, effect: float = SMALLEST, tests: int = 1, by_rank: bool = False
) -> ClaimVerdict:
    """Seen when the interval of the mean difference lies above zero; else open while it still holds `effect`.

    tests: of how many one suffices, or how often one was looked at; the level is corrected for them.
    by_rank: the interval is of the middle, by signed ranks.
    """
    differences = differences[np.isfinite(differences)]  # a share of a reference that is zero is no number
    if len(differences) < 2:
        return ClaimVerdict(NOT_TESTABLE, f"{what}: fewer than two independent pairs; splits of one table are one.")
    level = 1 - (1 - LEVEL) / tests
    interval, units = (rank_interval, units_needed_by_rank) if by_rank else (paired_interval, units_needed)
    found, needed = interval(differences, level), units(differences, effect, level)
    needs = (power.Need(what, effect, needed),)
    reason = f"{what}: {found}, {len(differences)} pairs."
    if found.low > 0:
        return ClaimVerdict(SEEN, reason, needs)
    if found.high >= effect:
        return ClaimVerdict(NOT_TESTABLE, f"{reason} A difference of {effect:g} would take about {needed:,}.", needs)
    return ClaimVerdict(NOT_SEEN, reason, needs)


def judge_others(records: Sequence[dict], score: str, what: str, effect: float = SMALLEST) -> ClaimVerdict:
    """Whether L2M's score is lower than each other method's on the same tasks; `what` names the other as `{}`. The general
    model, where it is asked beside the study's, is published and decides nothing."""
    others = [method for method in dict.fromkeys(r["method"] for r in records) if method not in ("l2m", GENERAL)]
    found = {other: pairs(records, score, "l2m", other, ("family", "task")) for other in others}
    return all_of([judge(values, what.format(figures.named(other)), effect) for other, values in found.items()])


def with_families(whole: Callable[[Sequence[dict]], ClaimVerdict], records: Sequence[dict]) -> ClaimVerdict:
    """The verdict over all records, and beside it what the same comparisons say of each family alone."""
    found = whole(records)
    families = list(dict.fromkeys(r["family"] for r in records))
    if len(families) < 2:
        return found
    own = [f"{figures.named(f)}: {whole([r for r in records if r['family'] == f]).reason}" for f in families]
    return replace(found, reason=f"{found.reason} By family, which decides nothing: {' '.join(own)}")


def all_of(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """Seen when each part is; not seen when one is not; else a part could not be tested, and so neither can all."""
    reason = " ".join(f"[{v.status}] {v.reason}" for v in verdicts)
    found = {v.status for v in verdicts}
    status = NOT_SEEN if NOT_SEEN in found else SEEN if found == {SEEN} else NOT_TESTABLE
    return ClaimVerdict(status, reason, tuple(need for v in verdicts for need in v.needs))


def any_of(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """Seen when one is; else open while one could not be tested."""
    reason = " ".join(f"[{v.status}] {v.reason}" for v in verdicts)
    found = {v.status for v in verdicts}
    status = SEEN if SEEN in found else NOT_SEEN if found == {NOT_SEEN} else NOT_TESTABLE
    return ClaimVerdict(status, reason, tuple(need for v in verdicts for need in v.needs))

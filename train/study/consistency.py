"""`python -m train consistency`: whether the gains that are shown are what the model itself would learn.

In random states of patients who are not in the context, each of some open tests has four gains: the gain head's; the
exact one, from the model's own answers to the results that it foresees (l2m_core/acquire/information.py); what a
step-through shows; and a reference that uses neither head: the mutual information of the model's answers over values
recorded in the rows nearest to the patient. Then the recorded result is entered, and the drop in log loss noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from l2m_core.acquire.foreseen import FEWEST_RECORDED
from l2m_core.acquire.information import Outlook, as_probabilities, filled, mutual_information, outlooks
from l2m_core.acquire.policies import Gain
from l2m_core.acquire.support import count_near, nearest_rows
from l2m_core.answering import devices
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.metrics import paired_interval, row_losses
from train.study.evaluation.cells import Trial
from train.study.evaluation.report import publish
from train.study.markdown import markdown_table
from train.study.random_states import NamedTrial, in_random_states, options, random_state, sources

TESTS = 10  # open tests of a state that are compared
NEAR_VALUES = 40  # recorded values of near rows that the reference tries, at most
REFERENCES = {"reference": slice(None), "half": slice(0, None, 2), "other_half": slice(1, None, 2)}
"""Which of the nearest rows each of them takes."""
FOLLOWED = ("head", "shown", "reference")
"""Gains whose first tests are compared by what was recorded."""
LEVEL = 0.95
LEAST_TOLD = 0.001  # nats; where nothing tells as much, there is nothing to give up and no size to compare
PAIRS = (
    ("head", "exact"),
    ("shown", "exact"),
    ("head", "reference"),
    ("shown", "reference"),
    ("exact", "reference"),
    ("half", "other_half"),
)


def main(arguments: Sequence[str]) -> int:
    parser = options("consistency", __doc__)
    parser.add_argument("--model", nargs="+", default=["general"], help="released models, by name or folder")
    given = parser.parse_args(arguments)
    devices.apply_option(given.device)
    devices.tell_of_gpu()
    chosen = list(sources(given.data, only=given.only))
    parts = [HEAD]
    for name in given.model:
        model = load(name)
        gains = measure(model, chosen, given.states)
        parts += [f"## {model.name} ({model.fingerprint[:12]})", *describe(gains)]
    command = f"python -m train consistency --model {' '.join(given.model)} --states {given.states}"
    parts.append(f"Made by `{command}`: {len(chosen)} cohorts.")
    publish(given.out / "consistency.md", "\n\n".join(parts) + "\n")
    return 0


def measure(model: L2M, chosen: Iterable[NamedTrial], states: int) -> pd.DataFrame:
    """One row for each test of each state: its gains, and what its recorded result told."""
    return in_random_states(model, chosen, states, gains_of_state)


def gains_of_state(memory: CohortMemory, trial: Trial, generator: np.random.Generator) -> pd.DataFrame:
    """A random patient of whom a random part is known, and some of the open tests."""
    cohort = memory.cohort
    row, x = random_state(cohort, trial, generator)
    open_columns = np.flatnonzero(np.isnan(x) & cohort.acquirable & (cohort.r.sum(0) >= FEWEST_RECORDED))
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
                **dict(zip(REFERENCES, reference_gains(memory, x, int(column)), strict=True)),
                "balanced": np.nan if outlook is None else float(outlook.is_balanced),
                "drop": np.nan if after is None else float(before - row_losses(after, y)[0]),
            }
        )
    return pd.DataFrame(rows)


def reference_gains(memory: CohortMemory, x: np.ndarray, column: int) -> list[float]:
    """Mutual information of the model's answers over values recorded in the nearest quarter of the rows, all as likely; and the
    same over every second of those rows, in order of nearness, and over the others. NaN where none has a value."""
    near = nearest_rows(memory, x[None], count_near(len(memory.cohort)))[0]
    values = memory.cohort.x[near, column]
    is_recorded = ~np.isnan(values)
    tried = np.unique(values[is_recorded])
    if len(tried) == 0:
        return [float("nan")] * len(REFERENCES)
    if len(tried) > NEAR_VALUES:
        levels = (np.arange(NEAR_VALUES) + 0.5) / NEAR_VALUES
        tried = np.union1d(np.quantile(values[is_recorded], levels, method="nearest"), tried[[0, -1]])
    # Each recorded value counts as the one that is tried next to it.
    nearest = np.abs(np.nan_to_num(values)[:, None] - tried).argmin(1)
    beliefs = as_probabilities(memory.predictions(filled(x, [column], tried[:, None])))
    gains = []
    for part in REFERENCES.values():
        times = np.bincount(nearest[part][is_recorded[part]], minlength=len(tried))
        gains.append(mutual_information(times / times.sum(), beliefs) if times.any() else float("nan"))
    return gains


# -- what is said of them ---------------------------------------------------------------------------------------------


def describe(gains: pd.DataFrame) -> list[str]:
    """Tables for a page."""
    again, most = reliability(gains)
    parts = [
        markdown_table(agreement(gains)),
        f"From its halves: two references like this one would agree at {again:.3f}, so nothing would agree with it at more than "
        f"about {most:.3f}.",
        "What the first test told, once its recorded result was entered:",
        markdown_table(followed(gains)),
    ]
    exact = gains[gains.exact.notna()]
    if len(exact):
        parts.append(
            f"Previews average to the belief within one point: {exact.balanced.mean():.1%} of {len(exact)} tests."
        )
        by_cohort = [
            {
                "cohort": name,
                **_agree(part, "shown", "reference"),
                "halves": _agree(part, "half", "other_half").get("rank_agreement", np.nan),
            }
            for name, part in gains.groupby("cohort", sort=False)
        ]
        parts += [
            "Shown against the reference, by cohort; `halves`: how far the reference's halves agree in rank there.",
            markdown_table(pd.DataFrame(by_cohort)),
        ]
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


def reliability(gains: pd.DataFrame) -> tuple[float, float]:
    """How far the reference would agree with another like it, by Spearman and Brown from its halves; and how far anything could
    agree with it, which is the root of that."""
    halves = _agree(gains, "half", "other_half").get("rank_agreement", 0.0)
    again = max(0.0, 2 * halves / (1 + halves))
    return again, float(np.sqrt(again))


def followed(gains: pd.DataFrame) -> pd.DataFrame:
    """What the test that each gain puts first told, once its recorded result was entered: the mean drop in log loss over
    states, and by how much more than the reference's first test, with an interval of Student's t over cohorts."""
    known = gains[gains["drop"].notna() & np.isfinite(gains[list(FOLLOWED)]).all(axis=1)]
    states = known.groupby(["cohort", "state"])
    drops = pd.DataFrame({gain: known.loc[states[gain].idxmax(), "drop"].to_numpy() for gain in FOLLOWED})
    drops["cohort"] = [cohort for cohort, _ in states.groups]
    rows = []
    for gain in FOLLOWED:
        more = (drops[gain] - drops["reference"]).groupby(drops["cohort"]).mean()
        interval = paired_interval(more.to_numpy(), LEVEL)
        low, high = interval.ends
        row = {"first_by": gain, "drop": drops[gain].mean(), "more": interval.mean, "low": low, "high": high}
        rows.append({**row, "states": len(drops), "cohorts": len(more)})
    return pd.DataFrame(rows)


def realised(gains: pd.DataFrame) -> pd.DataFrame:
    """Mean gain shown and mean drop in log loss with its interval, by decile of the gain shown. Tests of one state have the same
    patient, and states of one cohort the same table, so that cohorts are what is independent."""
    known = gains[gains["drop"].notna() & np.isfinite(gains.shown)]
    decile = pd.qcut(known.shown.rank(method="first"), 10, labels=False) + 1
    rows = []
    for number, part in known.groupby(decile):
        found = paired_interval(part["drop"].to_numpy(), LEVEL, groups=part["cohort"].to_numpy())
        counts = {"tests": len(part), "cohorts": part["cohort"].nunique()}
        rows.append({"decile": number, "shown": part.shown.mean(), "drop": str(found), **counts})
    return pd.DataFrame(rows)


HEAD = """# Whether gains are what the model itself would learn

Random states of patients outside the context. `head`: the gain head; `exact`: mutual information under the results that the
model foresees and its own answers to them; `shown`: what a step-through shows; `reference`: mutual information of the
model's answers over values recorded in the nearest quarter of the rows, which uses neither head; `half`, `other_half`: the
reference of every second of those rows, and of the others, which says how far the reference agrees with itself.
`rank_agreement`: Spearman's, mean over states; `among_two_best`: share of states in which the first test is one of the two
that tell most by the second column; `given_up`: share of the best gain; `factor`: by how much the size is off, median. States
in which no test tells 0.001 nats are left out. Of what the first test told, in all states: `drop`, of log loss in nats, of the
test among those recorded that a gain puts first; `more`: by how much more than the reference's first test, with its 95% interval
over cohorts. By decile: `drop` with its 95% interval, in which the tests of one cohort count as one unit."""

"""`python -m train informed_order`: what is saved by the order of tests of a model that has read more rows of the same table.

Of each cohort a short part is the context, as in `evaluate`. The predictions from it are asked for along three orders: the
model's own, a random one, and the model's own after it has read many more rows of the same table. The last one knows better
which test tells most, but does not predict here. It is no upper bound: the test that tells most to one who has read more may
tell less to one who has not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from l2m_core.acquire.policies import GainHead, Policy, RandomOrder
from l2m_core.answering import devices
from l2m_core.answering.engine import Answer, ConditionedModel
from l2m_core.cli import at_least, program, purpose
from l2m_core.errors import ConfigError
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.methods.l2m import L2MMethod
from l2m_core.paths import folder_to_write
from train.study.evaluation.cells import Cell, Trial, draw_trial, fitting_contexts
from train.study.evaluation.manifest import default_data_folder, read_manifest
from train.study.evaluation.report import publish
from train.study.evaluation.scores import score
from train.study.evaluation.summary import paired
from train.study.evaluation.trial_runs import roll_out
from train.study.experiments.families import Family, draw
from train.study.markdown import markdown_table

TEST_ROWS = 150
MORE = 2.5  # times as many rows as the context's, at least, make somebody better informed
OWN, INFORMED, RANDOM = "own", "informed", "random"
COMPARISONS = (
    (OWN, RANDOM, "The own order saves over random order"),
    (INFORMED, OWN, "The better informed order saves beyond the own one"),
)
GENERATED = tuple(
    Family(
        f"informed_{name}", prior="synthetic", features=features, context=1000, test_rows=TEST_ROWS, settings=settings
    )
    for name, features, settings in (
        ("narrow", 10, {"max_classes": 2}),
        ("wide", 24, {"max_classes": 2}),
        ("weak", 12, {"max_classes": 2, "least_gain": 0.0, "temperature": [0.2, 0.7], "noiseless_share": 0.0}),
    )
)


@dataclass(frozen=True)
class Case:
    """A trial, and the same trial with more rows as its context."""

    cell: Cell
    trial: Trial
    informed: Trial


@dataclass(frozen=True)
class OrderOf:
    """Ranks by the gain head of another memory, whatever memory predicts."""

    other: ConditionedModel
    in_nats: bool = True

    def scores(self, memory: ConditionedModel, x: np.ndarray, answer: Answer) -> np.ndarray:
        return self.other.answer(x).gain


def options(command: str, doc: str | None) -> argparse.ArgumentParser:
    """What commands that compare orders of tests have in common."""
    parser = argparse.ArgumentParser(prog=program("train", command), description=purpose(doc))
    parser.add_argument("--model", default="general", help="who predicts: a released model, by name or folder")
    parser.add_argument("--data", type=Path, default=default_data_folder(), help="cohorts with a manifest.yaml")
    parser.add_argument(
        "--contexts", type=at_least(2), nargs="+", default=[100, 400], help="rows that predictions learn from"
    )
    parser.add_argument("--seeds", type=at_least(0), nargs="+", default=[0], help="each draws rows anew")
    parser.add_argument("--budget", type=at_least(0), default=8, help="tests for each patient, at most")
    parser.add_argument("--out", type=folder_to_write, default=Path("docs/results"))
    devices.add_option(parser)
    return parser


def main(arguments: Sequence[str]) -> int:
    parser = options("informed_order", __doc__)
    parser.add_argument(
        "--rows", type=at_least(2), default=1500, help="rows that the better informed has read, at most"
    )
    parser.add_argument(
        "--tasks", type=at_least(0), default=10, help="of each family of the prior; 0: real cohorts only"
    )
    given = parser.parse_args(arguments)
    devices.apply_option(given.device)
    model, records = load(given.model), []
    real = real_cases(given.data, given.contexts, given.rows, given.seeds)
    for case in chain(real, generated_cases(given.tasks)):
        found = measure(model, case, given.budget)
        records += found
        losses = ", ".join(f"{record['method']} {record['log_loss']:.4f}" for record in found)
        print(f"{case.cell.cohort} {case.cell.context} seed {case.cell.seed}: {losses}", file=sys.stderr, flush=True)
    if not records:
        raise ConfigError(f"Nothing to ask about: no cohort of '{given.data}' has enough rows; give --tasks 1 or more.")
    contexts, seeds = (" ".join(map(str, numbers)) for numbers in (given.contexts, given.seeds))
    command = (
        f"python -m train informed_order --model {Path(given.model).name} --contexts {contexts} --rows {given.rows} "
        f"--seeds {seeds} --tasks {given.tasks} --budget {given.budget}"
    )
    publish(given.out / "informed_order.md", page(records, command, f"{model.name} ({model.fingerprint[:12]})"))
    return 0


def real_cases(folder: Path, contexts: Sequence[int], rows: int, seeds: Sequence[int]) -> Iterator[Case]:
    """Of two classes, since many classes make the better informed slow; of tables that have more rows to read."""
    tables = read_manifest(folder) if (folder / "manifest.yaml").is_file() else []
    for seed in seeds:
        for table in tables:
            cohort = table.load()
            if cohort.kind != "binary":
                continue
            for context in fitting_contexts(len(cohort), contexts):
                most = min(rows, len(cohort) - TEST_ROWS)
                if most < MORE * context:
                    continue
                cell = Cell(table.name, context, 0.0, seed)
                # Of one seed, the rows of a smaller context are among those of a larger one, and the last rows are asked about.
                trial = draw_trial(cohort, cell, TEST_ROWS)
                informed = draw_trial(cohort, Cell(table.name, most, 0.0, seed), TEST_ROWS)
                if not np.array_equal(trial.x, informed.x, equal_nan=True):
                    raise ConfigError(f"The rows asked about of '{table.name}' differ between contexts.")
                yield Case(cell, trial, informed)


def generated_cases(tasks: int) -> Iterator[Case]:
    for family in GENERATED:
        for number in range(tasks):
            whole = draw(family, number, Path())
            short = whole.context.rows(slice(0, 100))
            if len(np.unique(short.y)) == whole.context.n_classes:
                yield Case(Cell(family.name, 100, 0.0, number), Trial(short, whole.x, whole.y), whole)


def measure(model: L2M, case: Case, budget: int) -> list[dict]:
    """One record for each order."""
    memory, informed = model.condition(case.trial.context), model.condition(case.informed.context)
    orders: dict[str, Policy] = {OWN: GainHead(), INFORMED: OrderOf(informed), RANDOM: RandomOrder(case.cell.seed)}
    records = along(orders, memory, case.cell, case.trial, budget)
    return [{**record, "read": len(case.informed.context)} for record in records]


def along(orders: Mapping[str, Policy], memory: CohortMemory, cell: Cell, trial: Trial, budget: int) -> list[dict]:
    """One record for each order, all of the same memory's predictions."""
    records = []
    for name, policy in orders.items():
        method = L2MMethod(seed=cell.seed, model=memory.model, policy=policy).use(memory)  # type: ignore[arg-type]
        scores = score(roll_out(method, trial, budget), trial.y, trial.context)
        records.append({**vars(cell), "method": name, "kind": trial.context.kind, "log_loss": scores["log_loss"]})
    return records


def page(records: Sequence[dict], command: str, model: str) -> str:
    parts = [HEAD, f"`{command}`, model {model}."]
    generated = {family.name for family in GENERATED}
    for title, chosen in (
        ("Real cohorts", [r for r in records if r["cohort"] not in generated]),
        ("Synthetic tasks", [r for r in records if r["cohort"] in generated]),
    ):
        if chosen:
            parts += [f"## {title}", saved(chosen, COMPARISONS), markdown_table(_table(chosen))]
    return "\n\n".join(parts) + "\n"


def saved(records: Sequence[dict], comparisons: Sequence[tuple[str, str, str]]) -> str:
    """What one order saves beyond another. comparisons: the one, the other, and words for the two."""
    lines = []
    for lead, other, words in comparisons:
        found = paired(records, lead, other)
        assert found is not None
        lines.append(f"- {words}: {found[0]} nats over cells, {found[1]} over cohorts (95%, Student's t).")
    return "\n".join(lines)


def _table(records: Sequence[dict]) -> pd.DataFrame:
    """Means over seeds."""
    losses = pd.DataFrame(records).pivot_table(index=["cohort", "context", "read"], columns="method", values="log_loss")
    return losses[[OWN, INFORMED, RANDOM]].reset_index()


HEAD = """# The order of tests of one who has read more

The same predictions, by a model that has read a short context, along three orders of tests: its own (by the gain head, as in bulk
work), a random one, and that of the same model after it has read `read` rows of the same table, none of them decided about. The
last one knows better which test tells most, but does not predict here. What it saves beyond the own order shows what is lost by
choosing from few rows. It is no upper bound: the test that tells most to one who has read more may tell less to one who has not.
Log loss in nats, mean over budgets."""

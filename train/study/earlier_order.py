"""`python -m train earlier_order`: whether the order of tests is a better one than an earlier release's.

What an order saves over a random one depends on who predicts: a model that predicts better loses less along a random order too,
and so has less to save. Here one model predicts, along three orders: its own, that of an earlier release which has read the same
context, and a random one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from l2m_core.acquire.policies import GainHead, Policy, RandomOrder
from l2m_core.answering import devices
from l2m_core.cli import at_least
from l2m_core.memory import L2M, load
from train.study.evaluation.cells import Cell, Trial, draw_trial, real_cells
from train.study.evaluation.manifest import read_manifest
from train.study.evaluation.report import publish
from train.study.informed_order import OWN, RANDOM, OrderOf, along, options, saved
from train.study.markdown import markdown_table

EARLIER = "earlier"
COMPARISONS = (
    (OWN, RANDOM, "The own order saves over random order"),
    (EARLIER, RANDOM, "The earlier release's order saves over random order"),
    (OWN, EARLIER, "The own order saves beyond the earlier release's"),
)


def main(arguments: Sequence[str]) -> int:
    parser = options("earlier_order", __doc__)
    parser.add_argument(
        "--earlier", default="general-1", help="whose order is compared: an earlier release, by name or folder"
    )
    parser.add_argument("--missing", type=float, nargs="+", default=[0.0, 0.3], help="share of values that is hidden")
    parser.add_argument("--test-rows", type=at_least(1), default=300, help="rows that are decided about, at most")
    given = parser.parse_args(arguments)
    devices.apply_option(given.device)
    model, earlier = load(given.model), load(given.earlier)
    cohorts = {table.name: table.load() for table in read_manifest(given.data)}
    cohorts = {name: cohort for name, cohort in cohorts.items() if cohort.kind != "continuous"}
    sizes = {name: len(cohort) for name, cohort in cohorts.items()}
    records: list[dict] = []
    for cell in real_cells(sizes, given.contexts, given.missing, given.seeds):
        trial = draw_trial(cohorts[cell.cohort], cell, given.test_rows)
        found = measure(model, earlier, cell, trial, given.budget)
        records += found
        losses = ", ".join(f"{record['method']} {record['log_loss']:.4f}" for record in found)
        print(f"{cell.cohort} {cell.context} {cell.missing} seed {cell.seed}: {losses}", file=sys.stderr, flush=True)
    contexts, missing, seeds = (" ".join(map(str, n)) for n in (given.contexts, given.missing, given.seeds))
    command = (
        f"python -m train earlier_order --model {Path(given.model).name} --earlier {Path(given.earlier).name} "
        f"--contexts {contexts} --missing {missing} --seeds {seeds} --budget {given.budget} --test-rows {given.test_rows}"
    )
    names = [f"{one.name} ({one.fingerprint[:12]})" for one in (model, earlier)]
    publish(given.out / "earlier_order.md", page(records, command, *names))
    return 0


def measure(model: L2M, earlier: L2M, cell: Cell, trial: Trial, budget: int) -> list[dict]:
    """One record for each order. All predictions are the model's."""
    memory, other = model.condition(trial.context), earlier.condition(trial.context)
    orders: dict[str, Policy] = {OWN: GainHead(), EARLIER: OrderOf(other), RANDOM: RandomOrder(cell.seed)}
    return along(orders, memory, cell, trial, budget)


def page(records: Sequence[dict], command: str, model: str, earlier: str) -> str:
    losses = pd.DataFrame(records).pivot_table(
        index=["cohort", "context", "missing"], columns="method", values="log_loss"
    )
    said = f"`{command}`: {model} predicts; the earlier release is {earlier}."
    return (
        "\n\n".join(
            [HEAD, said, saved(records, COMPARISONS), markdown_table(losses[[OWN, EARLIER, RANDOM]].reset_index())]
        )
        + "\n"
    )


HEAD = """# The order of tests, beside an earlier release's

What an order of tests saves over a random one depends on who predicts: a model that predicts better loses less along a random
order too, and so has less to save. So one model predicts here, along three orders: its own (by the gain head, as in bulk work),
that of an earlier release which has read the same context, and a random one. Outcomes with classes; log loss in nats, mean over
budgets and seeds."""

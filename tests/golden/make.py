"""Makes the golden files anew: `python -m tests.golden.make [answers | checkpoint | store | traces]…`, all without a name.

The files under tests/golden/kept say what this project's stores, traces, model folders and checkpoints held, and what
its model answered, on the day they were made. They are made anew only where that is meant to change: what differs from
before is printed, and a change to them says why in its commit. The tests read the committed files and never make any.

    answers      answers.json: the released model on ten cohorts
    checkpoint   checkpoint/: two tiny jobs stopped half-way, a model folder of each, and how they go on
    store        store.database.gz and store.json: a data folder as the app writes it, and what is in it
    traces       traces/: the exported files of the step-throughs in that store
"""

from __future__ import annotations

import sys
import time

import torch

from tests.golden import answers, inside, jobs, stores
from tests.golden.agreement import write
from tests.golden.cohorts import COHORTS


def make_answers() -> None:
    model = inside.l2m.load(inside.GOLDEN_MODEL)
    found = {}
    for name, make in COHORTS.items():
        began = time.perf_counter()
        cohort = make()
        found[name] = {"cohort": answers.of_cohort(cohort), "model": answers.of_model(inside.condition(model, cohort))}
        print(f"  {name}: {time.perf_counter() - began:.1f} s")
    write("answers.json", {**found, "estimators": answers.of_estimators()})


PARTS = {"answers": make_answers, "checkpoint": jobs.make, "store": stores.make, "traces": stores.make_traces}


def main(names: list[str]) -> None:
    for name in names:
        if name not in PARTS:
            sys.exit(f"There is no part '{name}'. Known: {', '.join(PARTS)}.")
    torch.set_num_threads(1)
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])

"""Asks an installed package one question: python -I scripts/ask_installed.py PRETRAINED

Run with -I, so that the environment's packages answer and nothing beside this file. PRETRAINED is the repository's
folder of released models: the installed package must carry each of them.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import l2m_core as l2m
from l2m_core.paths import all_folders, pretrained_dir


def main() -> None:
    released = {weights.parent.name for weights in Path(sys.argv[1]).rglob("*.safetensors")}
    if not Path(l2m.__file__).is_relative_to(sys.prefix):
        sys.exit(f"not the installed package: {l2m.__file__}")
    if released != set(all_folders()):
        sys.exit(f"the repository releases {sorted(released)}, the package carries {sorted(all_folders())}")
    if not released:
        sys.exit(f"no model is released: {pretrained_dir()} holds none")

    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.normal(size=(200, 4)), columns=["pulse", "lactate", "sodium", "age"])
    table["died"] = table["lactate"] + 0.3 * generator.normal(size=200) > 0.5
    memory = l2m.load().condition(l2m.Cohort.from_frame(table, outcome="died", baseline=["age"]))
    low, high = memory.start({"lactate": -2.0}), memory.start({"lactate": 2.0})
    died = [patient.posterior[-1] for patient in (low, high)]
    if not 0 <= died[0] < died[1] <= 1:
        sys.exit(f"a cohort in which lactate decides was not understood: p(died) is {died}")
    first = memory.start({"age": 0.0}).ranking.iloc[0]["feature"]
    if first != "lactate":
        sys.exit(f"a cohort in which lactate decides suggests {first} first")
    print(f"installed: {sorted(released)}; p(died) {died[0]:.3f} with low lactate and {died[1]:.3f} with high lactate")


if __name__ == "__main__":
    main()

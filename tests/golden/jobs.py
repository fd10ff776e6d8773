"""Two tiny jobs stopped half-way, as `python -m train` leaves them, and a model folder released from each."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import l2m_core as l2m
from tests.golden import answers, inside
from tests.golden.agreement import KEPT, plain, write

FOLDER = KEPT / "checkpoint"
ANSWERS = "checkpoint/answers.json"
STOPPED, END = 3, 6  # steps
_COMMON: dict[str, Any] = {
    "folder": "job",
    "seed": 5,
    "held_out": ["own"],
    "held_out_pools": 1,
    # float32, so that losses are the same on machines whose bfloat16 rounds otherwise.
    "loop": {"lr": 0.003, "warmup": 2, "dtype": "float32", "evaluate_every": 3, "log_every": 1, "threads": 1},
}
_SHAPE: dict[str, Any] = {"layers": 1, "width": 16, "heads": 2, "feedforward": 16, "bins": 8}
_STAGE: dict[str, Any] = {"steps": END, "tasks": 4, "rows": [32], "features": [4], "lr": [1.0, 0.1]}
CONFIGS: dict[str, dict[str, Any]] = {
    "cells": {
        **_COMMON,
        "model": {**_SHAPE, "encoder": "cells", "max_classes": 3, "vote": True},
        "prior": {"name": "synthetic", "settings": {"max_classes": 3}},
        "stages": [{**_STAGE, "context": [0.5, 0.75], "continuous": 0.3}],
    },
    "rows": {
        **_COMMON,
        "model": {
            **_SHAPE,
            "encoder": "rows",
            "max_classes": 2,
            "features": 4,
            "outcome": "classes",
            "embedder_depth": 2,
        },
        "prior": {"name": "bnn", "settings": {"outcome": "classes"}},
        "orders": 2,
        "stages": [{**_STAGE, "baseline_known": 0.5}],
    },
}
RELEASES: dict[str, dict[str, Any]] = {
    "cells": {
        "run": "job", "folder": "model", "trained": {"features": 4, "context_rows": 24, "classes": 3},
        "inference": {"temperature": 0.9, "views": 2, "against_rest": 0.5, "care_rows": 64, "prevalence": 0.5},
    },
    "rows": {
        "run": "job", "folder": "model", "trained": {"features": 4, "context_rows": 24, "classes": 2, "outcomes": ["binary"]},
        "inference": {"policy": "learned"},
    },
}  # fmt: skip


def run(*arguments: str) -> None:
    """A command of `python -m train`, in this process."""
    assert inside.train_command(list(arguments)) == 0, arguments


def log_of(job: Path) -> list[dict[str, Any]]:
    """What the job's record says of each step, without how long it took."""
    lines = [json.loads(line) for line in (job / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def cohort(kind: str) -> l2m.Cohort:
    """Four features, and an outcome that the tiny model knows."""
    draw = np.random.default_rng(61)
    x = draw.normal(size=(24, 4)).round(3)
    classes = 3 if kind == "cells" else 2
    y = np.digitize(x[:, 0] + 0.3 * x[:, 1], np.linspace(-0.4, 0.4, classes - 1))
    x[draw.random(x.shape) < 0.2] = np.nan
    return l2m.Cohort.from_arrays(x, y, acquirable=[False, True, True, True], name=f"tiny {kind}")


def answers_of(folder: Path, kind: str) -> dict[str, Any]:
    """Of a model folder: what it is, and what it says of the tiny cohort."""
    model = l2m.load(str(folder))
    return {"card": model.card, **answers.of_model(inside.condition(model, cohort(kind)))}


def make() -> None:
    found = {}
    for kind in CONFIGS:
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
            Path("config.yaml").write_text(yaml.safe_dump(CONFIGS[kind], sort_keys=False))
            Path("release.yaml").write_text(yaml.safe_dump(RELEASES[kind], sort_keys=False))
            run("predictor", "--config", "config.yaml", f"stop_at={STOPPED}")
            run("release", "--config", "release.yaml")
            shutil.rmtree("job/tensorboard", ignore_errors=True)
            shutil.rmtree(FOLDER / kind, ignore_errors=True)
            shutil.copytree(place, FOLDER / kind)
            run("predictor", "--config", "config.yaml", "--resume")
            found[kind] = plain({"log": log_of(Path("job")), "model": answers_of(Path("model"), kind)})
    write(ANSWERS, found)

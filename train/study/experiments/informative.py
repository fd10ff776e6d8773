"""Precision and recall of informative features by budget."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from train.study.experiments import comparison, figures
from train.study.experiments.families import stand_ins
from train.study.experiments.verdicts import ClaimVerdict, all_of, finished, judge, pairs

TITLE = "Precision and recall of informative features"
CLAIM = (
    '"While the meta-learning approach demonstrates stronger uncertainty quantification (log loss) and discrimination (AUROC) '
    "performance at each decision budget, the task-specific approach is slightly more precise when identifying informative "
    'features."'
)
RULE = (
    "Means over budgets, paired by task, against each method trained on the task: L2M's log loss below, its AUROC above, and its "
    "precision of informative features below the other's, each with its interval on that side of zero."
)
EFFECT = "None is stated in numbers; the smallest differences worth seeing are 0.005 nats, and 0.01 of AUROC and of precision."
GATED = "l2m"

SETTINGS = comparison.ComparisonSettings
jobs = comparison.jobs
work = comparison.run_methods


def caption(settings: comparison.ComparisonSettings, data: Path) -> list[str]:
    return [
        "Step t is after t + 1 acquisitions.",
        *stand_ins(settings.families, data),
    ]


def table(records: list[dict]) -> pd.DataFrame:
    return comparison.by_step(finished(records), ["precision", "recall"])


def figure(table: pd.DataFrame):
    shown = table[table["score"] == "recall"].assign(step=lambda t: t["step"] + 1)
    return figures.lines(shown, "step", "value", "method", "family", "acquisitions", "recall of informative features")


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    means = [r if r.get("error") else {**r, "precision": float(np.mean(r["precision"]))} for r in records]
    others = [m for m in dict.fromkeys(r["method"] for r in records) if m not in ("l2m", "l2m_random")]
    parts = []
    for other in others:
        name, within = figures.named(other), ("family", "task")
        parts += [
            judge(pairs(means, "log_loss", "l2m", other, within), f"Log loss below {name}'s, nats"),
            judge(pairs(means, "auroc", other, "l2m", within), f"AUROC above {name}'s", 0.01),
            judge(pairs(means, "precision", "l2m", other, within), f"Precision below {name}'s", 0.01),
        ]
    return all_of(parts)

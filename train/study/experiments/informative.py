"""Precision and recall of informative features by budget."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from train.study.experiments import comparison, figures
from train.study.experiments.experiment import Verdict, finished, judge_others
from train.study.experiments.families import stand_ins

TITLE = "Precision and recall of informative features"
CLAIM = "L2M asks for the features that the label mechanism reads sooner than methods trained on the task alone do."
RULE = (
    "Recall of the informative features, averaged over budgets: above each other method's, paired by task, with the "
    "95% interval of the difference above zero."
)

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


def verdict(records: list[dict], table: pd.DataFrame) -> Verdict:
    """Over tasks: the share of informative features missed, averaged over budgets."""
    missed = [r if r.get("error") else {**r, "missed": 1 - float(np.mean(r["recall"]))} for r in records]
    return judge_others(missed, "missed", "Recall beyond {}'s")

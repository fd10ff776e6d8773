"""Acquisition step by step: L2M beside random order, GDFS, DIME and DQN."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from train.study.experiments import comparison
from train.study.experiments.families import stand_ins
from train.study.experiments.inference import NONE_STATED
from train.study.experiments.verdicts import ClaimVerdict, finished, judge_others, with_families

TITLE = "Acquisition by step"
CLAIM = (
    '"(1) L2M achieves lower log loss compared to random acquisition from the same model and (2) L2M consistently achieves '
    'lower log loss than all task-specific baselines on evaluation tasks across datasets."'
)
RULE = (
    "Mean log loss over the steps: lower than each other method's, paired by task over all families, with the interval of the "
    "difference above zero."
)
EFFECT = NONE_STATED
GATED = "l2m"

SETTINGS = comparison.ComparisonSettings
jobs = comparison.jobs
work = comparison.run_methods


BLOCKS = (
    "Digit pairs: one acquisition uncovers a whole block. Methods trained on the task learn from blocks and score blocks; "
    "L2M scores pixels, and the block of the best-scored one is uncovered."
)


def caption(settings: comparison.ComparisonSettings, data: Path) -> list[str]:
    return [
        "Log loss in nats (continuous outcomes: of the outcome in standard deviations of the "
        "context's; RMSE and MSE likewise).",
        *[BLOCKS] * any(family.source == "digits" for family in settings.families),
        *stand_ins(settings.families, data),
    ]


def table(records: list[dict]) -> pd.DataFrame:
    squared = [{**r, "mse_by_budget": _squared(r.get("rmse_by_budget"))} for r in finished(records)]
    return comparison.by_step(squared, ["log_loss_by_budget", "auroc_by_budget", "rmse_by_budget", "mse_by_budget"])


def _squared(values: list[float] | None) -> list[float]:
    return [value**2 for value in values or []]


figure = comparison.log_loss_by_step


def verdict(records: list[dict], table: pd.DataFrame) -> ClaimVerdict:
    """Over the tasks of all families: mean log loss over steps. Each family's own numbers stand beside it and decide nothing."""
    return with_families(lambda own: judge_others(own, "log_loss", "Below {}, nats"), records)

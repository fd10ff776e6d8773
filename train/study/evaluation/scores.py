"""From a roll-out to one flat record of scores, the same for every method."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from l2m_core import metrics
from l2m_core.acquire.rollout import Rollout
from l2m_core.cohort import Cohort

SPREAD_SHARE = 1e-3
"""Share of every prediction that is spread evenly over the classes before scoring, for all methods alike: without it,
one confident mistake, or a class that the context lacked, would decide a whole cell."""


def with_floor(p: np.ndarray) -> np.ndarray:
    """p: (n, K)"""
    return (1 - SPREAD_SHARE) * p + SPREAD_SHARE / p.shape[1]


def score(rollout: Rollout, y: np.ndarray, context: Cohort) -> dict[str, Any]:
    """Scores averaged over budgets 0 … T, and at the end."""
    return _score_numbers(rollout, y, context) if context.kind == "continuous" else _score_classes(rollout, y)


def base_rate(y: np.ndarray, context: Cohort) -> float:
    """Log loss of who knows the context's outcomes and nothing of the patient, in the units of `score`."""
    if context.kind == "continuous":
        scale = float(context.y.std()) or 1.0
        z = (y - context.y.mean()) / scale
        return float((0.5 * z**2 + 0.5 * np.log(2 * np.pi)).mean())
    counts = context.class_counts + 1 / context.n_classes
    return metrics.log_loss(np.tile(with_floor((counts / counts.sum())[None]), (len(y), 1)), y)


def _score_classes(rollout: Rollout, y: np.ndarray) -> dict[str, Any]:
    steps = [with_floor(p) for p in rollout.predictions]  # type: ignore[arg-type]
    losses = [metrics.log_loss(p, y) for p in steps]
    areas = [metrics.auroc(p, y) for p in steps]
    pooled, outcomes = np.concatenate(steps), np.tile(y, len(steps))
    rows = np.tile(np.arange(len(y)), len(steps))
    generator = np.random.default_rng(zlib.crc32(y.tobytes()))
    return {
        "log_loss": float(np.mean(losses)),
        "log_loss_end": losses[-1],
        "auroc": float(np.mean(areas)),
        "auroc_end": areas[-1],
        "brier": float(np.mean([metrics.brier(p, y) for p in steps])),
        # All budgets pooled: bins of some 20 rows would show mostly chance.
        "ece": metrics.ece(pooled, outcomes),
        "ece_by_chance": metrics.ece_if_calibrated(pooled, generator, rows=rows),
        "log_loss_by_budget": losses,
        "auroc_by_budget": areas,
    }


def _score_numbers(rollout: Rollout, y: np.ndarray, context: Cohort) -> dict[str, Any]:
    """In standard deviations of the context's outcome, so that cohorts can be averaged."""
    scale = float(context.y.std()) or 1.0
    losses = [float(-p.log_prob(y).mean() - np.log(scale)) for p in rollout.predictions]  # type: ignore[union-attr]
    crps = [metrics.crps(p, y) / scale for p in rollout.predictions]  # type: ignore[arg-type]
    errors = [metrics.rmse(p, y) / scale for p in rollout.predictions]
    levels = np.array([0.5, 0.8, 0.9])
    covered = np.mean([metrics.coverage(p, y, levels) for p in rollout.predictions], axis=0)  # type: ignore[arg-type]
    return {
        "log_loss": float(np.mean(losses)),
        "log_loss_end": losses[-1],
        "crps": float(np.mean(crps)),
        "crps_end": crps[-1],
        "rmse": float(np.mean(errors)),
        "rmse_end": errors[-1],
        "coverage_error": float(np.abs(covered - levels).mean()),
        "log_loss_by_budget": losses,
        "rmse_by_budget": errors,
    }


def informative_share(rollout: Rollout, informative: np.ndarray, known: np.ndarray) -> dict[str, list[float]]:
    """Precision and recall of the informative features among those acquired, by budget 1 … T.

    informative: (n, d) bool; known: (n, d) bool, what could be had and was not known at the start.
    Rows in which nothing informative could be had count in neither.
    """
    n, steps = rollout.actions.shape
    wanted = informative & known
    total = wanted.sum(1)
    counted = total > 0
    hit = np.zeros((n, steps))
    for t in range(steps):
        chosen = rollout.actions[:, t]
        hit[:, t] = (chosen >= 0) & wanted[np.arange(n), np.maximum(chosen, 0)]
    hits = hit.cumsum(1)[counted]
    asked = (rollout.actions >= 0).cumsum(1)[counted]
    if not counted.any():
        return {"precision": [float("nan")] * steps, "recall": [float("nan")] * steps}
    precision = hits / np.maximum(asked, 1)
    recall = hits / total[counted][:, None]
    return {"precision": precision.mean(0).tolist(), "recall": recall.mean(0).tolist()}

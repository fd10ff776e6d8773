"""The members of a council beside the model, and how each is fitted to the cohort's rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from l2m_core.council.council import MEMBERS
from l2m_core.tabular.bayesian_regression import BayesianRegression
from l2m_core.tabular.gaussian_process import GaussianProcess
from l2m_core.tabular.linear import FittedLinear, LinearSettings
from l2m_core.tabular.partial_models import Fitted
from l2m_core.tabular.predictions import Gaussian, Prediction
from l2m_core.tabular.preparation import Context
from l2m_core.tabular.trees import FittedTrees, TreeSettings

MOST_COPIES = 5
"""Copies of each row with random parts hidden, beside the row as recorded."""
COPIED_ROWS = 60_000
"""Of a long cohort fewer copies are made, so that a member learns from about this many rows at most."""


@dataclass(frozen=True)
class BaseRateMember:
    """The frequencies of the classes, or the mean and standard deviation, whatever is known of a row."""

    context: Context

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        y = self.context.y
        if self.context.continuous:
            return Gaussian(np.full(len(x), float(y.mean())), np.full(len(x), float(y.std()) or 1.0))
        count = np.bincount(y, minlength=self.context.n_classes) + 1.0  # add-one smoothing
        return np.tile(count / count.sum(), (len(x), 1))


def _regression(context: Context, random: np.random.Generator) -> Fitted:
    return FittedLinear(context, LinearSettings(strength=0.3, copies=copies_of(context), indicators=True), random)


def _shallow_trees(context: Context, random: np.random.Generator) -> Fitted:
    return FittedTrees(context, TreeSettings(depth=2, rounds=120, copies=copies_of(context)), random)


def _trees(context: Context, random: np.random.Generator) -> Fitted:
    settings = TreeSettings(depth=6, rounds=120, rate=0.05, copies=copies_of(context), leaf=10)
    return FittedTrees(context, settings, random)


FITTED_BY: dict[str, Callable[[Context, np.random.Generator], Fitted]] = {
    "base rate": lambda context, random: BaseRateMember(context),
    "regression": _regression,
    "shallow trees": _shallow_trees,
    "trees": _trees,
    "Gaussian process": GaussianProcess,
    "Bayesian regression": BayesianRegression,
}
"""Each of MEMBERS → how it is fitted."""


def members_of(kind: str) -> tuple[str, ...]:
    """Of MEMBERS, those that are fitted to such an outcome. With classes a Gaussian process added nothing, and
    beside the Bayesian regression the other one nothing."""
    elsewhere = ("Bayesian regression",) if kind == "continuous" else ("regression", "Gaussian process")
    return tuple(name for name in MEMBERS if name not in elsewhere)


def copies_of(context: Context) -> int:
    return int(np.clip(COPIED_ROWS // len(context.y) - 1, 1, MOST_COPIES))


def fit_members(names: Sequence[str], context: Context, seed: int) -> tuple[dict[str, Fitted], dict[str, str]]:
    """The members that could be fitted, and why the others could not. Each draws from a generator of its own, so that
    it is the same whoever else is fitted."""
    fitted: dict[str, Fitted] = {}
    refused: dict[str, str] = {}
    for name in names:
        if name != "base rate" and len(np.unique(context.y)) < 2:
            refused[name] = "its rows had one outcome only"
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that an optimiser stopped early: its weight says what that costs
                fitted[name] = FITTED_BY[name](context, np.random.default_rng([seed, MEMBERS.index(name)]))
        except (ValueError, ArithmeticError, np.linalg.LinAlgError, torch.linalg.LinAlgError) as error:
            refused[name] = type(error).__name__  # its message may quote a patient's value
    return fitted, refused

"""L2M behind the same three verbs as every other method, and the base rate that all of them must beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from l2m_core.acquire.policies import PolicyMethod, for_bulk, is_seeded, make_policy
from l2m_core.acquire.random_order import random_scores
from l2m_core.answering.predictive import Predictive
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.methods.interface import block, register
from l2m_core.tabular.predictions import CohortLike, Gaussian, Prediction

GENERAL = "general_model"


@register("l2m")
class L2MMethod:
    """Conditions a pretrained model on the cohort; nothing is trained. `cohort` must be a Cohort."""

    def __init__(self, *, seed: int = 0, model: L2M | str = "general", policy: str | None = None, **settings: Any):
        self.seed = seed
        self.model = load(model) if isinstance(model, str) else model
        self.policy = policy
        """None: the model's default, with the gain head for gains."""
        self.settings: Mapping[str, Any] = settings

    def fit(self, cohort) -> L2MMethod:
        return self.use(self.model.condition(cohort))

    def use(self, memory: CohortMemory) -> L2MMethod:
        """As `fit`, with a model that has read the cohort already."""
        settings = dict(self.settings)
        policy = for_bulk(self.policy, self.model.release.inference.policy)
        if is_seeded(policy):
            settings.setdefault("seed", self.seed)
        self.method = PolicyMethod(memory, make_policy(policy, **settings))
        return self

    def step(self, x: np.ndarray, a: np.ndarray) -> tuple[np.ndarray | Predictive, np.ndarray, np.ndarray]:
        return self.method.step(x, a)

    def predict(self, x: np.ndarray, a: np.ndarray) -> np.ndarray | Predictive:
        return self.method.predict(x, a)

    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.method.rank(x, a)


@register(GENERAL)
class GeneralModel(L2MMethod):
    """The released general model as a method of its own, beside a study's model in the place of `l2m`."""


@register("base_rate")
class BaseRate:
    """The context's class frequencies, or its mean and standard deviation, whatever is known of a row; a random order."""

    def __init__(self, *, seed: int = 0):
        self.seed = seed

    def fit(self, cohort: CohortLike) -> BaseRate:
        self.acquirable = np.asarray(cohort.acquirable, dtype=bool)
        y = np.asarray(cohort.y)
        if cohort.kind == "continuous":
            self.belief: np.ndarray | tuple[float, float] = (float(y.mean()), float(y.std()) or 1.0)
        else:
            self.belief = np.bincount(y.astype(np.int64), minlength=cohort.n_classes) / len(y)
        return self

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        if isinstance(self.belief, tuple):
            mean, std = self.belief
            return Gaussian(np.full(len(x), mean), np.full(len(x), std))
        return np.tile(self.belief, (len(x), 1))

    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        return block(random_scores(np.shape(x), self.seed), a, self.acquirable)

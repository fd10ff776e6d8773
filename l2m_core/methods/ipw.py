"""What an acquisition policy would lose, from records with holes: inverse probability weighting.

The policy π asks for features; in the records feature j of a row is there (r_j = 1) or not. Assumed: whether j is
recorded depends on nothing but what has been seen when it is asked for (missing at random along the trajectory),

    e_j(h) = P(r_j = 1 | x⊙a, r ⊇ a),      r_j independent of x_j, y and the rest given h = (x⊙a, a),

and every feature that π may ask for has e_j(h) > 0. Then P(r ⊇ {j_1 … j_T} | x) = Π_t e_{j_t}(h_t).

**Offline.** The trajectory follows π whatever is recorded, and counts only while everything asked for is there:

    w_T = Π_t 1[r_{j_t} = 1] / e_{j_t}(h_t).

**Semi-offline.** The trajectory follows the blocked policy π_b(j | h, r) = π(j | h) r_j / Σ_k π(k | h) r_k, which every
row can serve, and the weight undoes both the blocking and the selection:

    w_T = Π_t [π(j_t | h_t) / π_b(j_t | h_t, r)] / e_{j_t}(h_t) = Π_t [Σ_k π(k | h_t) r_k] / e_{j_t}(h_t).

For both, Σ over trajectories of (their probability · w) has the expectation Π_t π(j_t | h_t) over r, so E[w_T ℓ_T] is
the loss of the unblocked policy on fully recorded rows. The semi-offline weight replaces the offline one's all or
nothing by the recorded share of the policy, so it has less variance; for a policy without randomness they coincide.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from l2m_core.acquire.random_order import random_positions
from l2m_core.errors import CohortError
from l2m_core.methods.trajectories import Step
from l2m_core.tabular.predictions import CohortLike
from l2m_core.tabular.preparation import Encoding, prepare

Propensity = Callable[[Tensor, Tensor], Tensor]
"""(x⊙a (n, d), a (n, d) bool) → e (n, d), the probability that each feature is recorded"""


class LogisticPropensities:
    """e_j(x⊙a, a) by one logistic regression for each acquirable feature.

    It learns from sets a that are drawn without regard to r, keeping the rows that have them: those are draws from
    exactly the condition r ⊇ a. Sets are small, as along a trajectory.
    """

    def __init__(
        self, *, seed: int = 0, most_known: int = 8, draws: int = 20, strength: float = 1.0, least: float = 0.02
    ):
        self.seed = seed
        self.most_known = most_known
        """Acquirable features in a set, at most."""
        self.draws = draws
        """Sets for each row."""
        self.strength = strength
        """C of the regressions."""
        self.least = least
        """Propensities are raised to this: a bounded weight, for a little bias."""

    def fit(self, cohort: CohortLike) -> LogisticPropensities:
        context = prepare(cohort)
        random = np.random.default_rng(self.seed)
        self.encoding = Encoding(context)
        N, d = context.x.shape
        wanted = np.concatenate([self._sets(context.acquirable, N, random) for _ in range(self.draws)])
        x, r = np.tile(context.x, (self.draws, 1)), np.tile(context.r, (self.draws, 1))
        has_all = (r | ~wanted).all(1)
        if not has_all.any():
            raise CohortError("No row has the features that a trajectory would ask for; use rows with more recorded.")
        x, r, a = x[has_all], r[has_all], wanted[has_all] | (r[has_all] & ~context.acquirable)
        inputs = self.encoding.masked(x, a).astype(np.float64)
        self.models: dict[int, LogisticRegression | float] = {}
        for j in np.flatnonzero(context.acquirable).tolist():
            ask = ~a[:, j]
            recorded = r[ask, j]
            share = float(recorded.mean()) if ask.any() else float(context.r[:, j].mean())
            if share in (0.0, 1.0) or not ask.any():
                self.models[j] = share
                continue
            # The draws of one row are not independent evidence, so together they weigh 1.
            weight = np.full(ask.sum(), 1 / self.draws)
            model = LogisticRegression(C=self.strength, max_iter=300)
            self.models[j] = model.fit(inputs[ask], recorded, sample_weight=weight)
        return self

    def __call__(self, x: Tensor, a: Tensor) -> Tensor:
        inputs = self.encoding.masked(x.numpy(), a.numpy()).astype(np.float64)
        e = np.ones(a.shape)
        for j, model in self.models.items():
            e[:, j] = model if isinstance(model, float) else model.predict_proba(inputs)[:, 1]
        return torch.from_numpy(np.clip(e, self.least, 1.0)).float()

    def _sets(self, acquirable: np.ndarray, n_rows: int, random: np.random.Generator) -> np.ndarray:
        """(n_rows, d) bool: a random number of random acquirable features in each row"""
        position = random_positions(np.tile(acquirable, (n_rows, 1)), random)
        size = random.integers(min(self.most_known, int(acquirable.sum()) - 1) + 1, size=n_rows)
        return position < size[:, None]


def offline_ipw(propensity: Propensity) -> Step:
    """Trajectories of the policy itself; one that asks for what is not recorded ends with weight 0."""

    def step(probability: Tensor, r: Tensor, x: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
        # 0 where j is not recorded: the trajectory ends, and 1 / e_j makes up for those that end by chance.
        return probability, r / propensity(x, a)

    return step


def semi_offline_ipw(propensity: Propensity) -> Step:
    """Trajectories of the blocked policy, reweighted to the policy itself."""

    def step(probability: Tensor, r: Tensor, x: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
        # The factor Σ_k π(k) r_k / e_j undoes the blocking and the selection.
        blocked = probability * r
        share = blocked.sum(-1, keepdim=True)
        return blocked / share.clamp(min=1e-30), share / propensity(x, a)

    return step

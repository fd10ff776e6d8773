"""The acquisition conditioned oracle, approximated by neighbours (AACO; Valancius et al., 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Unpack

import numpy as np
import torch

from l2m_core.errors import ConfigError
from l2m_core.methods.interface import register
from l2m_core.methods.masked import MaskedNetworkMethod, PredictorSettings, Rows
from l2m_core.methods.neighbours import Neighbours
from l2m_core.tabular.predictions import CohortLike, known_cells
from l2m_core.tabular.preparation import by_action, prepare

MOST_CELLS = 4_000_000
"""Of (rows, candidate sets, context rows) held at once."""


@register("aaco")
class AACO(MaskedNetworkMethod):
    """The set of tests that would help rows like this one most; of that set, the test that helps most by itself.

    The oracle looks for the set v of tests that are still open with the lowest expected loss and cost,

        v* = argmin_v  1/k Σ_i ℓ(f(x⊙a, x_v⁽ⁱ⁾), y⁽ⁱ⁾) + α |v|,   i among the k rows of the context nearest in x⊙a,

    then asks for the member of v* with the lowest expected loss alone, and looks again. Since sets are compared, tests
    that tell only together are seen. Nothing is trained for the order. f is the predictor that GDFS and DIME begin with,
    trained with random acquisitions, where the paper has boosted trees: so methods differ by their orders.

    Candidates are all sets of open tests where those are few, else each test alone and random sets, as in the paper.
    What the paper leaves open:

    - The first test, before anything is known: every row of the context is as near, and all count. The authors' own code
      is given that test.
    - Where the empty set is best, the paper stops. Here somebody else decides when, so the order goes on by tests alone.
    - A context with holes. The neighbours for v are the k nearest rows that recorded all of v, and sets are compared by
      how much they lower the loss of their own neighbours, which is the same where nothing is missing.
    - Prices. |v| counts actions, a panel being one, whatever they cost.
    - k and α: the authors' own code has 20 and 0.05 in its example.
    """

    def __init__(
        self, *, neighbours: int = 20, price: float = 0.05, sets: int = 100, **predictor: Unpack[PredictorSettings]
    ):
        super().__init__(**predictor)
        if neighbours < 1 or price < 0 or sets < 1:
            raise ConfigError(
                f"AACO has neighbours {neighbours}, price {price:g} and sets {sets}; "
                "give at least 1 neighbour, a price of at least 0, and at least 1 set."
            )
        self.neighbours = neighbours
        """k"""
        self.price = price
        """α, in the unit of the loss, for each action of a set."""
        self.sets = sets
        """Random candidate sets, beside each action alone."""

    def fit(self, cohort: CohortLike) -> AACO:
        super().fit(cohort)
        context = prepare(cohort)
        self.neighbourhood = Neighbours(context, self.random)
        rows = self.neighbourhood.context
        self.has = by_action(rows.r & rows.acquirable, self.groups)  # (N, actions)
        self.target = self.head.target(rows.y)
        self.candidates = self._draw_candidates(np.unique(self.groups[self.acquirable]))
        return self

    def _learn(self, rows: Rows, held: Rows) -> None:
        self._train_predictor(rows, held, self.pretraining)

    def _draw_candidates(self, actions: np.ndarray) -> np.ndarray:
        """(S, actions) bool: first every action alone, those of baseline features too, which are never open."""
        alone = np.eye(self.n_actions, dtype=bool)
        if 2 ** len(actions) <= self.sets:
            chosen = np.array(list(product([False, True], repeat=len(actions))))
        else:
            position = self.random.random((self.sets, len(actions))).argsort(1).argsort(1)
            chosen = position < self.random.integers(2, len(actions) + 1, size=(self.sets, 1))
        several = np.zeros((len(chosen), self.n_actions), dtype=bool)
        several[:, actions] = chosen
        return np.concatenate([alone, several[chosen.sum(1) > 1]])

    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        x, a = np.asarray(x, dtype=np.float32), np.asarray(a, dtype=bool)
        scores = np.empty((len(x), self.n_actions))
        blank = ~known_cells(x, a).any(1)
        # Patients of whom nothing is known differ by what could not be had at most.
        kinds, of_kind = np.unique(a[blank], axis=0, return_inverse=True)
        scores[blank] = self._in_parts(np.full(kinds.shape, np.nan, np.float32), kinds, len(self.has))[of_kind.ravel()]
        scores[~blank] = self._in_parts(x[~blank], a[~blank], self.neighbours)
        return self._by_feature(torch.from_numpy(scores), a)

    def _in_parts(self, x: np.ndarray, a: np.ndarray, k: int) -> np.ndarray:
        """(n, actions) scores by k neighbours"""
        chunk = max(1, MOST_CELLS // (len(self.candidates) * len(self.has)))
        scores = [self._ordered(x[s : s + chunk], a[s : s + chunk], k) for s in range(0, len(x), chunk)]
        return np.concatenate([np.empty((0, self.n_actions)), *scores])

    def _ordered(self, x: np.ndarray, a: np.ndarray, k: int) -> np.ndarray:
        """(n, actions) members of the best set before all others, each by what it lowers the loss alone."""
        drop, wanted = self._drops(x, a, k)
        alone = drop[:, : self.n_actions]
        # An action that no row of the context has comes last.
        lowest = np.nanmin(np.where(np.isnan(alone), 0, alone), axis=1, keepdims=True)
        alone = np.where(np.isnan(alone), lowest - 1, alone)
        worth = np.nan_to_num(drop, nan=-np.inf) - self.price * wanted.sum(2)
        best = wanted[np.arange(len(x)), worth.argmax(1)] & (worth.max(1) > 0)[:, None]
        return alone + best * (np.ptp(alone, axis=1, keepdims=True) + 1)

    @torch.no_grad()
    def _drops(self, x: np.ndarray, a: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(n, S) mean drop of the neighbours' loss with each candidate set, NaN where no row has it; and what of it is
        open: (n, S, actions)."""
        known, open_cells = known_cells(x, a), ~a & self.acquirable
        wanted = self.candidates & by_action(open_cells, self.groups)[:, None]
        values = self.encoding.values(x)
        now = self.predictor(torch.from_numpy(self.encoding.masked(x, known)))
        total, count = np.zeros(wanted.shape[:2]), np.zeros(wanted.shape[:2])
        for row, candidate, near in self._neighbours_of(x, known, wanted, k):
            filled = wanted[row, candidate][:, self.groups] & open_cells[row] & self.neighbourhood.context.r[near]
            cells = known[row] | filled
            of_column = self.encoding.owner
            mixed = (
                np.where(known[row][:, of_column], values[row], self.neighbourhood.values[near]) * cells[:, of_column]
            )
            after = self.predictor(torch.from_numpy(np.concatenate([mixed, cells], axis=1, dtype=np.float32)))
            target = self.target[near]
            drops = (self.head.losses(now[row], target) - self.head.losses(after, target)).numpy()
            np.add.at(total, (row, candidate), drops)
            np.add.at(count, (row, candidate), 1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan), wanted

    def _neighbours_of(
        self, x: np.ndarray, known: np.ndarray, wanted: np.ndarray, k: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(row, candidate, context row), the k nearest that have all of a set, in parts; nothing for empty sets."""
        nearest = self.neighbourhood.nearest(x, known)  # (n, N)
        n, S, actions = wanted.shape
        lacking = wanted.reshape(-1, actions).astype(np.float32) @ (~self.has).T.astype(np.float32)
        usable = (lacking.reshape(n, S, -1) == 0) & wanted.any(2, keepdims=True)
        usable = np.take_along_axis(usable, nearest[:, None], axis=2)
        row, candidate, position = np.nonzero(usable & (usable.cumsum(2) <= k))
        part = max(1, MOST_CELLS // self.n_inputs)
        for start in range(0, len(row), part):
            some = slice(start, start + part)
            yield row[some], candidate[some], nearest[row[some], position[some]]

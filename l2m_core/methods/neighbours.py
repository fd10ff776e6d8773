"""The rows of a context that are nearest to others in what is known of those."""

from __future__ import annotations

import numpy as np

from l2m_core.tabular.preparation import Context, Encoding


class Neighbours:
    """Rows of a context, shuffled once, so that rows at equal distance are taken at random."""

    def __init__(self, context: Context, random: np.random.Generator):
        self.context = context.rows(random.permutation(len(context.y)))
        self.encoding = Encoding(context)
        self.values = self.encoding.values(self.context.x)
        """(N, D) encoded, 0 where not recorded"""
        # Doubles: the squares below cancel.
        self._recorded = self.context.r[:, self.encoding.owner].astype(np.float64)
        self._values = self.values.astype(np.float64)

    def nearest(self, x: np.ndarray, known: np.ndarray) -> np.ndarray:
        """(n, N) context rows, nearest first, by squared distance over the known features of x (n, d).

        A cell that a context row lacks counts as its expected distance: z² + 1, for a standardised value.
        """
        of_column = known[:, self.encoding.owner].astype(np.float64)
        z = self.encoding.values(x) * of_column
        distance = (
            (z**2).sum(1)[:, None]
            - 2 * z @ (self._values * self._recorded).T
            + of_column @ (self._values**2 * self._recorded + 1 - self._recorded).T
        )
        return np.argsort(np.round(distance, 9), axis=1, kind="stable")

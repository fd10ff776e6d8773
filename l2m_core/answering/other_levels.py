"""A level that the cohort never had is 'other'; where no row is 'other', it tells a model nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from l2m_core.cohort import Cohort


@dataclass(frozen=True)
class OtherLevels:
    """The features of which no row is 'other'. columns: (m,) their places in x; codes: (m,) the code of 'other' in each."""

    columns: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, cohort: Cohort) -> OtherLevels:
        columns = np.array([j for j, feature in enumerate(cohort.features) if feature.levels], dtype=np.int64)
        # Beyond the codes of all levels that have a name.
        codes = np.array([len(cohort.features[j].levels) for j in columns], dtype=cohort.x.dtype)
        is_held = (cohort.x[:, columns] == codes).any(axis=0)
        return cls(columns[~is_held], codes[~is_held])

    def not_known(self, x: np.ndarray) -> np.ndarray:
        """x, (n, d) with NaN where unknown, with NaN also where a patient is 'other' and no row is.

        To the model codes are places on a line: it would answer about a level beyond the last, which nothing has taught it.
        """
        is_other = x[:, self.columns] == self.codes  # (n, m)
        if not is_other.any():
            return x
        told = x.copy()
        told[:, self.columns] = np.where(is_other, np.nan, x[:, self.columns])
        return told

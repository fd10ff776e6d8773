"""Patients with several rows: those of one patient are alike, and so tell less than as many rows of different patients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Clustering:
    """How alike rows of one patient are."""

    patient: np.ndarray
    """(n,) which patient each row is of, from 0."""
    correlation: float
    """Of what two rows of one patient show, from 0 (no more alike than others) to 1 (the same)."""

    @classmethod
    def of(cls, patient: np.ndarray, shown: np.ndarray) -> Clustering:
        """shown: (n,) or (n, S) what each row shows, such as how far its prediction was off.

        The intraclass correlation by analysis of variance: how much more patients differ than rows of one patient do.
        """
        shown = np.asarray(shown, dtype=np.float64).reshape(len(patient), -1)
        size = np.bincount(patient)
        n, patients = len(patient), len(size)
        if n == patients or patients < 2:
            return cls(patient, 0.0)
        means = np.stack([np.bincount(patient, one) for one in shown.T], 1) / size[:, None]  # (patients, S)
        within = ((shown - means[patient]) ** 2).sum() / (n - patients)
        between = (size[:, None] * (means - shown.mean(0)) ** 2).sum() / (patients - 1)
        usual = (n - size @ size / n) / (patients - 1)  # rows of a patient
        spread = between + (usual - 1) * within
        return cls(patient, float(np.clip((between - within) / spread, 0, 1)) if spread > 0 else 0.0)

    def worth(self, member: np.ndarray) -> float:
        """So many rows of different patients tell as much as those of `member`, (n,) bool."""
        size = np.bincount(self.patient[member]).astype(np.float64)
        n = size.sum()
        return float(n / (1 + (size @ size / n - 1) * self.correlation)) if n else 0.0

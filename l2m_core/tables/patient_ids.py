"""Columns that tell which rows belong to one patient."""

from __future__ import annotations

import re

import numpy as np

from l2m_core.tables.column_reading import Reading

_WHO = r"(?:patient|pat|pt|subject|subj|participant|person|proband|client)"
_KEY = r"(?:id|ids|nr|no|number|key|code|identifier|mrn)"
# By itself "pt" is the prothrombin time.
PATIENT_NAME = re.compile(
    rf"(?i)(?:.*[ _.-])?{_WHO}[ _.-]?{_KEY}|(?!pt$){_WHO}|(?:.*[ _.-])?(?:mrn|pid)|id|record[ _.-]?id"
)
FEWEST_PATIENTS = 10
MOST_ROWS_OF_ONE = 20  # on average; a column of fewer values groups something else than patients


def patients_with_several_rows(reading: Reading) -> tuple[int, int, int] | None:
    """Patients, those of them with several rows, and the rows of these; None where a column does not tell that."""
    if reading.problem is not None or not PATIENT_NAME.fullmatch(reading.name):
        return None
    present = int(reading.present.sum())
    if not FEWEST_PATIENTS <= reading.distinct < present or present > MOST_ROWS_OF_ONE * reading.distinct:
        return None
    if reading.numbers is not None:
        numbers = reading.numbers[reading.present]
        if np.any(numbers != np.round(numbers)):
            return None
        counts = np.unique(numbers, return_counts=True)[1]
    else:
        counts = reading.counts[reading.counts > 0]
    several = counts[counts > 1]
    return len(counts), len(several), int(several.sum())
